-- Counts messages of one API key.
--
-- KEYS[1] is a hash: `s` and `n` are the time at which the whole burst is available again (seconds since 1970 and
-- nanoseconds), `a` the time at which they were written (microseconds), `d` is a day (since 1970, UTC) and `c` the requests
-- of it. The time is the server's own.
--
-- Arguments: the burst and the wanted lease, in nanoseconds of the rate (0 for no limit); the requests of a day (-1 for no
-- limit) and the wanted lease of them; requests of today that were admitted without this script; then for each message
-- its cost in nanoseconds and its requests.
--
-- The answer: the seconds of the clock, the lease in nanoseconds and in requests, and for each message three numbers: 0 if
-- it is admitted, -1 if it exceeds the limit of the day, else the nanoseconds until it is admitted; the nanoseconds until the
-- whole burst is available; and the requests of the day.
local now = redis.call('TIME')
local seconds, nanos = tonumber(now[1]), tonumber(now[2]) * 1000
local size, most = tonumber(ARGV[1]), tonumber(ARGV[3])

local stored = redis.call('HMGET', KEYS[1], 's', 'n', 'd', 'c', 'a')
for index = 1, 5 do
  local value = tonumber(stored[index] or '')
  -- This script writes numbers only, and none so large that sums with it are inexact.
  stored[index] = value and math.abs(value) < 2 ^ 53 and value or nil
end
local used = 0
if stored[1] and stored[2] then
  used = (stored[1] - seconds) * 1e9 + stored[2] - nanos
  -- A clock that was set back, or that of a replica that took over, must not make the wait longer: no time has passed.
  local ahead = stored[5] and (stored[5] - seconds * 1e6 - nanos / 1e3) * 1e3 or 0
  used = math.max(0, used - math.max(0, ahead))
end
-- No message makes the wait longer than its own cost beyond the burst.
used = math.min(used, size + 2 ^ 50)
local today, count = math.floor(seconds / 86400), 0
-- A clock that was set back must not give a second quota for the day. A day further ahead than the next one is an
-- error of the clock: its requests count as those of today.
if stored[3] and stored[4] and stored[3] >= today then
  count = math.max(0, stored[4])
  if stored[3] == today + 1 then
    today = stored[3]
  end
end
count = count + tonumber(ARGV[5])

local answer = {seconds, 0, 0}
for index = 6, #ARGV, 2 do
  local cost, requests = tonumber(ARGV[index]), tonumber(ARGV[index + 1])
  local late = 0
  if most >= 0 and requests > math.max(0, most - count) then
    late = -1
  elseif size > 0 then
    -- A message that costs more than the burst is admitted when the whole burst is available.
    late = math.max(0, used + math.min(cost, size) - size)
  end
  if late == 0 then
    used = used + (size > 0 and cost or 0)
    count = count + requests
  end
  answer[#answer + 1] = late
  answer[#answer + 1] = used
  answer[#answer + 1] = count
end

-- A lease is at most a sixteenth of the burst and a tenth of a second of the rate, and a sixty-fourth of the requests
-- that are left of the day. Near the limit there is none.
if size > 0 and used * 2 <= size then
  answer[2] = math.min(tonumber(ARGV[2]), math.floor(size / 16), 1e8)
  used = used + answer[2]
end
if most >= 0 then
  answer[3] = math.min(tonumber(ARGV[4]), math.floor(math.max(0, most - count) / 64))
  count = count + answer[3]
end

local function whole(number)
  return string.format('%.0f', number)
end
local life = used / 1e6 + 1000
if size > 0 then
  local last = nanos + used
  redis.call('HSET', KEYS[1], 's', whole(seconds + math.floor(last / 1e9)), 'n', whole(last % 1e9),
    'a', whole(seconds * 1e6 + nanos / 1e3))
end
if most >= 0 then
  redis.call('HSET', KEYS[1], 'd', whole(today), 'c', whole(count))
  life = math.max(life, ((today + 1) * 86400 - seconds + 3600) * 1000)
end
if size > 0 or most >= 0 then
  redis.call('PEXPIRE', KEYS[1], whole(life))
end
return answer
