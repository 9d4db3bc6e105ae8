-- The last id of a stream, 0-0 if there is none. An id more than a minute ahead of the server's clock was not written by a
-- front end, or was written before the clock was set back. All further ids would follow on it, so the stream starts anew.
local function last_id()
  if redis.call('EXISTS', KEYS[1]) == 0 then
    return '0-0'
  end
  local about = redis.call('XINFO', 'STREAM', KEYS[1])
  local last = '0-0'
  for index = 1, #about, 2 do
    if about[index] == 'last-generated-id' then
      last = about[index + 1]
    end
  end
  if tonumber(string.match(last, '^%d+')) > tonumber(redis.call('TIME')[1]) * 1000 + 60000 then
    redis.call('DEL', KEYS[1])
    return '0-0'
  end
  return last
end
