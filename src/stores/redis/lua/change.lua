-- Uses: jobs, leases, insert, running.
-- Cancels, replays or discards jobs, each if it is in a state that allows it.
-- ARGV: cancel, replay or discard; the reason of a cancel (JSON); states that are meant, as in STATES (empty: all); ids.
-- Answers: a letter for each: c changed (a cancel: it never runs), q its worker is told, f not in a state for it, m missing,
--       o in a state that is not meant.
if ARGV[1] ~= 'replay' then write_though_full() end
local action, reason, meant = ARGV[1], ARGV[2], ARGV[3]
local STATES = { ['ready:'] = 'r', ['suspects:'] = 'r', ['delay:'] = 's' }

local told = {}

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

local function replay(id, head)
  local key, hold = head[8], head[9]
  if type(key) == 'string' then
    local holder = holder_of(key)
    if holder and holder ~= id then return 'f' end
    take_key(key, hold, id)
  end
  local past = past_of(id)
  past.a, past.c = nil, nil
  write_past(id, past)
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
  if meant ~= '' and not string.find(meant, state, 1, true) then return 'o' end
  if action == 'replay' then return state == 'd' and replay(id, head) or 'f' end
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
