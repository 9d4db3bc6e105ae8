-- Takes a filter for one front end.
-- KEYS[1] the filter: fields value, by (the name of the taker) and till (when that ends, in milliseconds)
-- ARGV    1 the name of the taker, 2 for how long, 3 lifetime of the filter (both in milliseconds)
-- returns {none, busy or taken; value; time of the store in milliseconds}
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local filter = redis.call('HMGET', KEYS[1], 'value', 'by', 'till')
if not filter[1] then
  return { 'none', '', now }
end
-- No front end takes a filter for longer than this one. The server's clock may have been set back.
local left = (tonumber(filter[3] or '') or 0) - now
if filter[2] and filter[2] ~= ARGV[1] and left > 0 and left <= tonumber(ARGV[2]) then
  return { 'busy', '', now }
end
redis.call('HSET', KEYS[1], 'by', ARGV[1], 'till', now + tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return { 'taken', filter[1], now }
