-- Notes that an owner uses filters of these sizes, and forgets those that were used longest ago if there are too many, or if
-- they take too many bytes.
-- KEYS[1] the filters of the owner: by the id, the time of the last use in milliseconds, and the bytes
-- ARGV    1 most filters, 2 most bytes, 3 lifetime in milliseconds, then each filter and its bytes; 0 if it was removed
-- returns the filters to remove
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local lifetime = tonumber(ARGV[3])
local filters, ids, count, bytes = {}, {}, 0, 0
-- No front end has noted so many filters, or one of such a size.
local most = tonumber(ARGV[2])
if redis.call('HLEN', KEYS[1]) > 4 * tonumber(ARGV[1]) then
  redis.call('DEL', KEYS[1])
end
local all = redis.call('HGETALL', KEYS[1])
for index = 1, #all, 2 do
  local used, size = string.match(all[index + 1], '^(%d+) (%d+)$')
  local bytes = tonumber(size or '0')
  -- The server's clock may have been set back.
  filters[all[index]] = { used = math.min(tonumber(used or '0'), now), size = bytes <= most and bytes or 0 }
end
local changed = {}
for index = 4, #ARGV, 2 do
  filters[ARGV[index]] = { used = now, size = tonumber(ARGV[index + 1]), new = 1 }
  changed[ARGV[index]] = true
end
for id, filter in pairs(filters) do
  if filter.size == 0 or now - filter.used > lifetime then
    redis.call('HDEL', KEYS[1], id)
  else
    ids[#ids + 1] = id
    count, bytes = count + 1, bytes + filter.size
    if changed[id] then
      redis.call('HSET', KEYS[1], id, string.format('%.0f %.0f', now, filter.size))
    end
  end
end
table.sort(ids, function(one, other)
  local a, b = filters[one], filters[other]
  if a.used ~= b.used then
    return a.used < b.used
  end
  return (a.new or 0) < (b.new or 0)
end)
local surplus = {}
for _, id in ipairs(ids) do
  if count <= tonumber(ARGV[1]) and bytes <= most then
    break
  end
  redis.call('HDEL', KEYS[1], id)
  surplus[#surplus + 1] = id
  count, bytes = count - 1, bytes - filters[id].size
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return surplus
