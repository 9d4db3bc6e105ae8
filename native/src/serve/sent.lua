-- Notes that a transaction was sent, and tells the front ends.
-- KEYS[1] the transactions that were sent last, also the name of the channel
-- ARGV    1 the transaction, 2 how many are kept, 3 for how long (milliseconds)
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'hash', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[1], '')
return 1
