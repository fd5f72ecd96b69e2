-- Uses: jobs, leases, insert, rewrite, running.
-- Cancels, replays or discards jobs, each if it is in a state that allows it.
-- ARGV: cancel, replay or discard; the reason of a cancel (JSON) or the payload of a replay (empty: stays); what is meant
--       (JSON): states as in STATES, fingerprints, and from and before which time it ended; ids.
-- Answers: a letter for each: c changed (a cancel: it never runs), q its worker is told, f not in a state for it, m missing,
--       o not meant.
if ARGV[1] ~= 'replay' then write_though_full() end
local action, reason, payload, meant = ARGV[1], ARGV[2], ARGV[2], cjson.decode(ARGV[3])
local from, before = tonumber(meant.from), tonumber(meant.before)
local STATES = { ['ready:'] = 'r', ['suspects:'] = 'r', ['delay:'] = 's' }

local told = {}

local function failed_so(id, fingerprints)
  local err = past_of(id).e
  local mine = err and cjson.decode(err).fingerprint
  for _, fingerprint in ipairs(fingerprints) do
    if fingerprint == mine then return true end
  end
  return false
end

local function is_meant(id, state, ending)
  if meant.states and not string.find(meant.states, state, 1, true) then return false end
  local ended = ending and tonumber(string.match(ending, '%d+'))
  if from and not (ended and ended >= from) then return false end
  if before and not (ended and ended < before) then return false end
  return not meant.fingerprints or failed_so(id, meant.fingerprints)
end

local function cancel_waiting(id, record, queue, set, score)
  redis.call('ZREM', B .. set .. queue, id)
  local rank = set == 'delay:' and score - head_start_of(record) or score
  finish(id, queue, 'x', int(rank), 0, ',' .. reason)
end

-- The first reason stays.
local function cancel_running(id)
  redis.call('HSETNX', CANCELS, id, reason)
  told[#told + 1] = id
end

local function replay(id, record, head)
  local key, hold = head[8], head[9]
  if type(key) == 'string' then
    local holder = holder_of(key)
    if holder and holder ~= id then return 'f' end
    take_key(key, hold, id)
  end
  local past = past_of(id)
  past.a, past.c = nil, nil
  write_past(id, past)
  if payload ~= '' then redis.call('HSET', JOBS, id, with_payload(record, payload)) end
  redis.call('HDEL', ENDS, id)
  redis.call('ZREM', B .. 'dead', id)
  count('dead', head[3], -1)
  place(id, head[3], now, head[2], false)
  return 'c'
end

local function change(id)
  local record = redis.call('HGET', JOBS, id)
  if not record then return 'm' end
  local head, ending = head_of(record), redis.call('HGET', ENDS, id)
  local set, score
  if not ending then set, score = waits_in(id, head[3]) end
  local state = ending and string.sub(ending, 3, 3) or set and STATES[set] or 'u'
  if not is_meant(id, state, ending) then return 'o' end
  if action == 'replay' then return state == 'd' and replay(id, record, head) or 'f' end
  if action == 'discard' then
    if not ending then return 'f' end
    forget({ id })
    return 'c'
  end
  if ending then return 'f' end
  if set then cancel_waiting(id, record, head[3], set, score)
  else cancel_running(id) end
  return set and 'c' or 'q'
end

local answers = {}
for index = 4, #ARGV do answers[#answers + 1] = change(ARGV[index]) end
for _, held in pairs(find_running(told)) do hint('c ' .. held.lease.worker) end
return table.concat(answers)
