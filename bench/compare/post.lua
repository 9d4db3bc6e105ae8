-- Requests of wrk: the environment has their body.
wrk.method = 'POST'
wrk.headers['Content-Type'] = 'application/json'
wrk.body = os.getenv('BODY')
