-- Agrees on the block that all front ends show. One front end reports, and gets its role and the state.
--
-- A front end that has shown a block must not show an earlier one afterwards, whichever front end a client asks. So a block
-- is shown in two steps: all live front ends stop letting messages in ("ack"), and when all have done so, all show it.
--
-- A store that was emptied, or one that took over and lacks the last changes, gets back from the reports which block was
-- shown last, and for which one front ends have stopped. An attacker who writes to the store can delay the head,
-- but for no longer than front ends can: no time lies further ahead than a front end may set it.
--
-- KEYS[1]   a hash, also the name of the channel that announces changes. Its fields:
--           raw      the server's clock at the last report, in milliseconds
--           clock    the time by which all others are kept, in milliseconds; see below
--           born     when the agreement began
--           server   the run of the server on which it began
--           shown    the block that is shown, as hash:number
--           at       the round in which it came to be shown; front ends look at this field for each message
--           next     the block that is to be shown; empty if none
--           round    counts the blocks that were to be shown
--           waiting  since when front ends disagree; empty if they agree
--           alone    since when front ends without the shown block are the only ones
--           lost     when a front end was last left out, or did not report any more
--           m:NAME   the last report of a front end
--           o:NAME   until when a front end that was left out may still answer; it has not reported yet that it has stopped
-- ARGV      1 name, 2 lifetime of the report, 3 time after which front ends that lag are left out (both in milliseconds),
--           4 the shown block that it knows of, 5 whether that block is on its chain (1 or 0), 6 the round for which it
--           stopped, 7 work of its chain (64 hexadecimal digits), 8 its last blocks, newest first, as hash:number each
--           followed by a comma, 9 whether it lets no messages in (1 or 0), 10 the round in which the block of 4 came to be
--           shown, 11 the block for which it stopped
-- returns   {role: member, behind, wait, or fresh while the store does not know all front ends yet; round; next; shown; the
--           round in which that came to be shown; milliseconds since one was lost, or -1}

local heads, name = KEYS[1], ARGV[1]
local lifetime, patience = tonumber(ARGV[2]), tonumber(ARGV[3])
local clock = redis.call('TIME')
local raw = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)

-- No front end has written so many fields, or such a long one.
if redis.call('HLEN', heads) > 4096 then
  redis.call('DEL', heads)
end
local all = redis.call('HGETALL', heads)
local state, members, live, leaving = {}, {}, 0, 0
for index = 1, #all, 2 do
  if #all[index] + #all[index + 1] > 4096 then
    redis.call('HDEL', heads, all[index])
    all[index], all[index + 1] = '', ''
  end
  state[all[index]] = all[index + 1]
end
local function set(field, value)
  redis.call('HSET', heads, field, value)
  state[field] = value
end
-- A number of the store as far as a front end may have written it: digits alone, as the front ends read it too.
local function number(text)
  local value = string.find(text or '', '^%d+$') and tonumber(text)
  return value and value < 2 ^ 52 and value or nil
end
-- The server's clock may be set, and a replica that takes over may have another one. Backwards, the time stands still for a
-- moment. Forwards, one step is taken for a third of a report's lifetime, so that it ends no report of a front end that goes
-- on reporting.
local now = raw
if number(state['raw']) and number(state['clock']) then
  local passed = math.min(math.max(raw - number(state['raw']), 0), math.floor(lifetime / 3))
  now = number(state['clock']) + passed
end
set('raw', raw)
set('clock', string.format('%.0f', now))
-- A moment that has passed.
local function moment(field)
  local value = number(state[field])
  return value and value <= now and value or nil
end
local function note(field)
  set(field, string.format('%.0f', now))
end
for index = 1, #all, 2 do
  local field, value = all[index], all[index + 1]
  local kind = string.sub(field, 1, 2)
  if kind == 'o:' then
    local ends = number(value) or 0
    if ends <= now or (field == 'o:' .. name and ARGV[9] == '1') then
      redis.call('HDEL', heads, field)
    else
      leaving = leaving + 1
      if ends > now + lifetime then
        set(field, string.format('%.0f', now + lifetime))
      end
    end
  elseif kind == 'm:' then
    local ends, knows, canonical, ack, work, blocks = string.match(value, '^(%d+) (%S*) (%d) (%d+) (%x+) (%S*)$')
    if ends and tonumber(ends) > now then
      local rest = string.sub(value, #ends + 1)
      if tonumber(ends) > now + lifetime then
        ends = string.format('%.0f', now + lifetime)
        set(field, ends .. rest)
      end
      members[string.sub(field, 3)] =
        { knows = knows, canonical = canonical, ack = tonumber(ack), work = work, blocks = blocks, ends = ends }
      live = live + 1
    else
      redis.call('HDEL', heads, field)
      note('lost')
    end
  end
end
-- A store that was emptied does not know the front ends, and a server that was restarted, or took over, may lack the last
-- changes. Each front end reports, or stops answering, within the lifetime of a report; until then no message is let in
-- anew, and no other block is shown.
local about = redis.pcall('INFO', 'server')
local server = type(about) == 'string' and string.match(about, 'run_id:(%w+)') or ''
if not moment('born') or state['server'] ~= server then
  note('born')
  set('server', server)
end
local ready = now - moment('born') > lifetime
local shown, upcoming = state['shown'] or '', state['next'] or ''
local round, shown_round = number(state['round']) or 0, number(state['at']) or 0

local function announce()
  redis.call('PUBLISH', heads, string.format('%.0f', round))
end
local function count(field, value)
  set(field, string.format('%.0f', value))
end
round = math.max(round, shown_round)
local known_round, ack = tonumber(ARGV[10]), tonumber(ARGV[6])
-- No front end sets rounds so far ahead.
if known_round > 0 and math.max(round, shown_round) > known_round + 2 ^ 32 then
  shown, upcoming, round, shown_round = '', '', 0, 0
end
-- This front end knows of a later shown block than the store.
if known_round > shown_round then
  shown, shown_round = ARGV[4], known_round
  if round <= known_round then
    round, upcoming = known_round, ''
  end
  set('shown', shown)
  set('next', upcoming)
  count('at', shown_round)
  count('round', round)
  announce()
end
-- It has stopped for a block that the store does not know of, and that other front ends may show already.
if ack > round then
  round, upcoming = ack, ARGV[11]
  set('next', upcoming)
  count('round', round)
  announce()
end

local function leave_out(other)
  redis.call('HDEL', heads, 'm:' .. other)
  redis.call('HSET', heads, 'o:' .. other, members[other].ends)
  members[other] = nil
  live = live - 1
  note('lost')
end
local function answer(role, upcoming)
  local lost = moment('lost')
  return { role, round, upcoming, shown, shown_round, lost and now - lost or -1 }
end

-- A front end that joins must have the shown block, and does not join while another one is to be shown. If no front end is
-- left that has the shown block, it has left the chain.
if not members[name] and shown ~= '' then
  if ARGV[4] ~= shown or ARGV[5] ~= '1' then
    local alone = moment('alone')
    if live == 0 and not alone then
      note('alone')
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
  -- From now on the others wait until it stops.
  redis.call('HDEL', heads, 'alone', 'o:' .. name)
end
local ends = string.format('%.0f', now + lifetime)
members[name] =
  { knows = ARGV[4], canonical = ARGV[5], ack = ack, work = ARGV[7], blocks = ARGV[8], ends = ends }
set('m:' .. name, table.concat({ ends, ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8] }, ' '))
-- Nothing outlives the front ends for long.
redis.call('PEXPIRE', heads, 86400000)
if not ready then
  return answer('fresh', '')
end

-- The newest block that all front ends have.
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

-- Whether the shown block may be replaced by the newest common one: all front ends have it below that block, or none has it.
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

-- A front end that has left the block that is to be shown cannot stop for it. No front end shows that block yet.
if upcoming ~= '' and ack ~= round and not string.find(ARGV[8], upcoming .. ',', 1, true) then
  upcoming = ''
  set('next', '')
  announce()
end

-- Begins to show a block that all members have.
local function propose(block)
  if block and block ~= shown and (shown == '' or replaceable()) then
    round = round + 1
    upcoming = block
    set('next', upcoming)
    count('round', round)
    set('waiting', '')
    announce()
  end
end

if upcoming == '' then
  propose(common())
end

if upcoming ~= '' then
  local stopped = leaving == 0
  for _, member in pairs(members) do
    stopped = stopped and member.ack == round
  end
  if stopped then
    shown, upcoming, shown_round = upcoming, '', round
    set('shown', shown)
    count('at', shown_round)
    set('next', '')
    announce()
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
elseif not moment('waiting') then
  note('waiting')
  announce()
elseif now - moment('waiting') > patience then
  for other, member in pairs(members) do
    if not string.find(member.blocks, head .. ',', 1, true) then
      leave_out(other)
    end
  end
  set('waiting', '')
  announce()
  -- At once, because those that were left out join again as long as there is no next block.
  propose(head)
end
return answer(members[name] and 'member' or 'wait', members[name] and upcoming or '')
