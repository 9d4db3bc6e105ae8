-- Sets a value that others can do without, unless much of the server's memory is in use already.
-- KEYS[1] the value
-- ARGV    1 the value, 2 lifetime in milliseconds, 3 how much of the server's memory may be in use, in percent
-- returns 1, or 0 if there is no room. A server that does not tell, or has no limit, takes every value.
local memory = redis.pcall('INFO', 'memory')
if type(memory) == 'string' then
  local used = tonumber(string.match(memory, '\nused_memory:(%d+)') or '0')
  local most = tonumber(string.match(memory, '\nmaxmemory:(%d+)') or '0')
  if most > 0 and used * 100 > most * tonumber(ARGV[3]) then
    return 0
  end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
