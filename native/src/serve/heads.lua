-- Agrees on the block that all front ends show. One front end reports, and learns what to do.
--
-- A front end that has shown a block must not show an earlier one afterwards, whichever of them a client asks. So a block
-- is shown in two steps: all live front ends stop letting messages in ("ack"), and when all have done so, all show it.
--
-- KEYS[1]   a hash, also the name of the channel that tells of changes. Its fields:
--           raw      the server's clock at the last report, in milliseconds
--           clock    the time by which all others are kept, in milliseconds; see below
--           born     when the agreement began
--           shown    the block that is shown, as hash:number
--           next     the block that is to be shown; empty if none
--           round    counts the blocks that were to be shown
--           waiting  since when front ends disagree; empty if they agree
--           alone    since when front ends without the shown block are the only ones
--           lost     when a front end was last left out, or did not report any more
--           m:NAME   the last report of a front end
--           o:NAME   until when a front end that was left out may still answer; it has not said yet that it does not
-- ARGV      1 name, 2 lifetime of the report, 3 time after which front ends that lag are left out (both in milliseconds),
--           4 the shown block that it knows of, 5 whether that block is on its chain (1 or 0), 6 the round for which it
--           stopped, 7 work of its chain (64 hexadecimal digits), 8 its last blocks, newest first, as hash:number each
--           followed by a comma, 9 whether it lets no messages in (1 or 0)
-- returns   {what: member, behind or wait; round; next; shown; number of live front ends; milliseconds since one was lost, or
--           -1}

local heads, name = KEYS[1], ARGV[1]
local lifetime, patience = tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local raw = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

local all = redis.call('HGETALL', heads)
local state, members, live, leaving = {}, {}, 0, 0
for at = 1, #all, 2 do
  state[all[at]] = all[at + 1]
end
-- The server's clock may be set, and a replica that takes over may have another one. Backwards, the time stands still for a
-- moment. Forwards, one step is taken for a third of a report's lifetime, so that it ends no report of a front end that goes
-- on reporting.
local now = raw
if state['raw'] and state['clock'] then
  local passed = math.min(math.max(raw - tonumber(state['raw']), 0), math.floor(lifetime / 3))
  now = tonumber(state['clock']) + passed
end
redis.call('HSET', heads, 'raw', raw, 'clock', now)
local function set(field, value)
  redis.call('HSET', heads, field, value)
end
local function lose()
  state['lost'] = tostring(now)
  set('lost', now)
end
for at = 1, #all, 2 do
  local field, value = all[at], all[at + 1]
  local kind = string.sub(field, 1, 2)
  if kind == 'o:' then
    if tonumber(value) <= now or (field == 'o:' .. name and ARGV[9] == '1') then
      redis.call('HDEL', heads, field)
    else
      leaving = leaving + 1
    end
  elseif kind == 'm:' then
    local ends, knows, canonical, ack, work, blocks = string.match(value, '^(%d+) (%S*) (%d) (%d+) (%x+) (%S*)$')
    if ends and tonumber(ends) > now then
      members[string.sub(field, 3)] =
        { knows = knows, canonical = canonical, ack = tonumber(ack), work = work, blocks = blocks, ends = ends }
      live = live + 1
    else
      redis.call('HDEL', heads, field)
      lose()
    end
  end
end
-- A store that was emptied does not know the front ends. Each of them reports, or stops answering, within the lifetime of a
-- report; until then no other block is shown.
if not state['born'] then
  state['born'] = tostring(now)
  set('born', now)
end
local ready = now - tonumber(state['born']) > lifetime
local shown, upcoming, round = state['shown'] or '', state['next'] or '', tonumber(state['round'] or '0')

local function tell()
  redis.call('PUBLISH', heads, tostring(round))
end
local function leave_out(other)
  redis.call('HDEL', heads, 'm:' .. other)
  redis.call('HSET', heads, 'o:' .. other, members[other].ends)
  members[other] = nil
  live = live - 1
  lose()
end
local function answer(part, upcoming)
  local lost = tonumber(state['lost'] or '')
  return { part, round, upcoming, shown, live, lost and now - lost or -1 }
end

-- A front end that joins must have the shown block, and does not join while another one is to be shown. If no front end is
-- left that has the shown block, it has left the chain.
if not members[name] and shown ~= '' then
  if ARGV[4] ~= shown or ARGV[5] ~= '1' then
    local alone = tonumber(state['alone'] or '')
    if live == 0 and not alone then
      set('alone', now)
    end
    if live > 0 or not alone or now - alone <= patience or ARGV[4] ~= shown then
      return answer('behind', '')
    end
  elseif upcoming ~= '' and live > 0 then
    return answer('wait', '')
  end
end
if not members[name] then
  live = live + 1
  -- From now on its stop is waited for.
  redis.call('HDEL', heads, 'alone', 'o:' .. name)
end
local ends = string.format('%.0f', now + lifetime)
members[name] =
  { knows = ARGV[4], canonical = ARGV[5], ack = tonumber(ARGV[6]), work = ARGV[7], blocks = ARGV[8], ends = ends }
set('m:' .. name, table.concat({ ends, ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8] }, ' '))
-- Nothing outlives the front ends for long.
redis.call('PEXPIRE', heads, 86400000)

-- The newest block that all have.
local function common()
  for block in string.gmatch(ARGV[8], '[^,]+') do
    local everywhere = true
    for _, member in pairs(members) do
      everywhere = everywhere and string.find(member.blocks, block .. ',', 1, true) ~= nil
    end
    if everywhere then
      return block
    end
  end
end

-- Whether the shown block may be replaced by the newest common one: all have it below that block, or none has it.
local function replaceable()
  local with, without = 0, 0
  for _, member in pairs(members) do
    if member.knows == shown and member.canonical == '1' then
      with = with + 1
    elseif member.knows == shown then
      without = without + 1
    end
  end
  return with == live or without == live
end

-- A front end that has left the block that is to be shown cannot stop for it. Nobody shows that block yet.
if upcoming ~= '' and tonumber(ARGV[6]) ~= round and not string.find(ARGV[8], upcoming .. ',', 1, true) then
  upcoming = ''
  set('next', '')
  tell()
end

-- Begins to show a block that all members have.
local function propose(block)
  if ready and block and block ~= shown and (shown == '' or replaceable()) then
    round = round + 1
    upcoming = block
    set('next', upcoming)
    set('round', round)
    set('waiting', '')
    tell()
  end
end

if upcoming == '' then
  propose(common())
end

if upcoming ~= '' then
  local stopped = leaving == 0 and ready
  for _, member in pairs(members) do
    stopped = stopped and member.ack == round
  end
  if stopped then
    shown, upcoming = upcoming, ''
    set('shown', shown)
    set('next', '')
    tell()
  end
  return answer('member', upcoming)
end

-- Front ends that lag, or are on a lighter branch, are left out after a while; they join again when they have the block.
local heaviest, differ = name, false
for other, member in pairs(members) do
  if member.work > members[heaviest].work then
    heaviest = other
  end
end
local head = string.match(members[heaviest].blocks, '^([^,]*),')
differ = head ~= nil and head ~= shown
if not differ then
  set('waiting', '')
elseif (state['waiting'] or '') == '' then
  set('waiting', now)
  tell()
elseif now - tonumber(state['waiting']) > patience then
  for other, member in pairs(members) do
    if not string.find(member.blocks, head .. ',', 1, true) then
      leave_out(other)
    end
  end
  set('waiting', '')
  tell()
  -- At once, because those that were left out join again as long as there is no next block.
  propose(head)
end
return answer(members[name] and 'member' or 'wait', members[name] and upcoming or '')
