-- Sets a value that front ends can do without, unless much of the server's memory is in use already. After memory.lua.
-- KEYS[1] the value
-- ARGV    1 the value, 2 lifetime in milliseconds, 3 how much of the server's memory may be in use, in percent
-- returns 1, or 0 if too much is in use
if is_full(ARGV[3]) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
