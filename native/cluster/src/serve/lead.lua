-- Gives the lead to one of the front ends for a while: it asks the backends for new blocks and passes them to the others.
-- KEYS[1] the name of the front end that has the lead
-- ARGV    1 name of the front end that asks, 2 for how long, in milliseconds, 3 whether it wants the lead (1 or 0)
-- returns 0 if another front end has the lead; 1 if the front end that asks has it, or none has it
local holder = redis.call('GET', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
if holder and (left < 0 or left > tonumber(ARGV[2])) then
  -- No front end has taken the lead for so long.
  redis.call('DEL', KEYS[1])
  holder = false
end
if ARGV[3] == '1' and (not holder or holder == ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
if holder == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
-- Without a leader no front end passes blocks to the others, so each asks the backends.
return (holder and holder ~= ARGV[1]) and 0 or 1
