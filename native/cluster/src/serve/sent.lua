-- Notes that a transaction was sent, and announces it to the front ends. After last_id.lua.
-- KEYS[1] the transactions that were sent last, also the name of the channel
-- ARGV    1 the transaction, 2 how many are stored, 3 for how long (milliseconds), 4 up to which id front ends have read
--         (milliseconds)
local last, read = tonumber(string.match(last_id(), '^%d+')), tonumber(ARGV[4])
local time, id = redis.call('TIME'), '*'
local now = tonumber(time[1]) * 1000
-- The stream was lost, and its ids were ahead of the clock. Ids that follow on them are after the positions of all filters. The
-- clock's microseconds make them differ from those of a stream that was lost since, of which this front end has read nothing.
if last < read and now <= read and read <= now + 60000 then
  id = string.format('%.0f-%s%06d', read + 1, time[1], tonumber(time[2]))
end
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], id, 'hash', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[1], '')
return 1
