-- Notes that an owner has used filters, and forgets those that were used longest ago if there are too many.
-- KEYS[1] the filters of the owner by the time of their last use
-- ARGV    1 most filters, 2 lifetime in milliseconds, then the filters
-- returns the filters to remove
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
for at = 3, #ARGV do
  redis.call('ZADD', KEYS[1], now, ARGV[at])
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local surplus = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[1])
if surplus <= 0 then
  return {}
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, surplus - 1)
redis.call('ZREM', KEYS[1], unpack(oldest))
return oldest
