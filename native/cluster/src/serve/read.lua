-- Reads transactions that were sent. After last_id.lua.
-- KEYS[1] the transactions that were sent last
-- ARGV    1 the id after which they are wanted, 2 how many, 3 the length of one in bytes
-- returns {the last id of the stream; the transactions, as id and value in turn}. One that has another length has an empty value,
--         because no front end has written it.
local last, found = last_id(), {}
if last ~= '0-0' then
  for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2])) do
    local value = entry[2][2]
    if #entry[2] ~= 2 or #value ~= tonumber(ARGV[3]) then
      redis.call('XDEL', KEYS[1], entry[1])
      value = ''
    end
    found[#found + 1] = entry[1]
    found[#found + 1] = value
  end
end
return { last, found }
