-- Puts a filter back, or a new one there. The same again changes nothing, so that it can be tried again. After memory.lua.
-- KEYS[1] the filter, as of take.lua; field last: the name under which it was put back last
-- ARGV    1 the name of the taker, or of the maker, 2 the value; empty if the filter is removed, 3 lifetime in milliseconds, 4 new or
--         taken, 5 the last moment at which it may be put back, in milliseconds of the store: later the front end has given up
--         6 for a new one, how much of the server's memory may be in use, in percent
-- returns 1, or 0 if another front end has taken it meanwhile, or the moment is over, or 2 if the memory is full for a new one
local filter = redis.call('HMGET', KEYS[1], 'by', 'last')
if filter[2] == ARGV[1] then
  return 1
end
if ARGV[4] == 'taken' then
  local clock = redis.call('TIME')
  local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
  if filter[1] ~= ARGV[1] or now > tonumber(ARGV[5]) then
    return 0
  end
end
if ARGV[4] == 'new' and is_full(ARGV[6]) then
  -- The last part of the memory is for limits and keys.
  return 2
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  return 1
end
redis.call('HSET', KEYS[1], 'value', ARGV[2], 'last', ARGV[1])
redis.call('HDEL', KEYS[1], 'by', 'till')
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
