-- Whether more than so many percent of the server's memory are in use.
-- A server that does not report its memory, or has no limit, is never full.
local function is_full(percent)
  local memory = redis.pcall('INFO', 'memory')
  if type(memory) ~= 'string' then
    return false
  end
  local used = tonumber(string.match(memory, '\nused_memory:(%d+)') or '0')
  local most = tonumber(string.match(memory, '\nmaxmemory:(%d+)') or '0')
  return most > 0 and used * 100 > most * tonumber(percent)
end
