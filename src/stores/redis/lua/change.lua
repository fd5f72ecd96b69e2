-- Uses: jobs, waiting, by_id, final, leases, insert, rewrite, running, filter, edit.
-- Cancels, replays, discards or edits jobs that a filter selects, each if its state allows it.
-- ARGV: cancel, replay, discard or edit; the reason of a cancel (JSON), the payload of a replay (empty: stays), or an edit as
--       edit.lua takes it; a filter as filter.lua takes it; ids.
-- Answers: a letter for each selected job: c changed (a cancelled job never runs), q its cancel was requested from its worker,
--       h its worker has reported that the cancel took effect, f its state does not allow the change, u it runs and can't be edited,
--       k another job holds its key.
local action, reason, payload = ARGV[1], ARGV[2], ARGV[2]
local ACTIONS = { cancel = true, replay = true, discard = true, edit = true }
if not ACTIONS[action] then return refused('an unknown action') end
local edit = action == 'edit' and cjson.decode(ARGV[2])
local fault = edit and fault_of_edit(edit)
if fault then return refused(fault) end
-- A full Redis refuses to replay and to edit: that may take more memory. Cancelling and discarding make room.
if action == 'cancel' or action == 'discard' then write_though_full() end
local told = {}

local function cancel(id, record, ending)
  if ending then return 'f' end
  local beginning = beginning_of(record)
  local wait = wait_of(id, beginning.queue, beginning.head_start)
  if wait then
    leave(id, wait)
    finish(id, beginning.queue, 'x', int(wait.due - beginning.head_start), 0, ',' .. reason)
    return 'c'
  end
  if redis.call('HEXISTS', HEARD, id) == 1 then return 'h' end
  -- The first reason stays.
  redis.call('HSETNX', CANCELS, id, reason)
  told[#told + 1] = id
  return 'q'
end

-- Takes the unique key again, if the job has one. False if another job holds it.
local function takes_key(id, record)
  -- Most records end here: no key and no options, so nothing to decode.
  if string.find(record, '^%[%d+,-?%d+,"[^"\\]*","[^"\\]*",%d+,%d+,%d+%]') then return true end
  local head = head_of(record)
  local key, hold = head[8], head[9]
  if type(key) ~= 'string' then return true end
  local holder = holder_of(key)
  if holder and holder ~= id then return false end
  take_key(key, hold, id)
  return true
end

-- Gives a job all its attempts back. Its error, attempt records, progress and log lines stay.
local function reset_past(id, text)
  if not text or not (string.find(text, '"a":', 1, true) or string.find(text, '"c":', 1, true)) then return end
  local past = cjson.decode(text)
  past.a, past.c = nil, nil
  write_past(id, past)
end

-- Dead jobs become ready, those of one queue and lane together.
local function replay_all(ids, records, ends)
  local answers, groups = {}, {}
  for index, id in ipairs(ids) do
    local record, ending = records[index], ends[index]
    local is_dead = ending and string.sub(ending, 3, 3) == 'd'
    answers[index] = is_dead and (takes_key(id, record) and 'c' or 'k') or 'f'
    if answers[index] == 'c' then
      if payload ~= '' then write_record(id, with_payload(record, payload)) end
      local beginning = beginning_of(record)
      local name = int(beginning.head_start) .. beginning.queue
      groups[name] = groups[name] or { queue = beginning.queue, head_start = beginning.head_start, ids = {}, scored = {} }
      local group = groups[name]
      group.ids[#group.ids + 1] = id
      group.scored[#group.scored + 1] = int(now - group.head_start)
      group.scored[#group.scored + 1] = id
    end
  end
  for _, group in pairs(groups) do
    leave_final(group.ids, group.queue, 'd')
    for index, text in ipairs(read_many(PAST, group.ids)) do reset_past(group.ids[index], text) end
    into_ready(group.queue, group.head_start, false, group.scored)
  end
  return answers
end

-- Final jobs are deleted.
local function discard_all(ids, ends)
  local answers, final = {}, {}
  for index, id in ipairs(ids) do
    answers[index] = ends[index] and 'c' or 'f'
    if ends[index] then final[#final + 1] = id end
  end
  if #final > 0 then forget(final) end
  return answers
end

local function cancel_all(ids, records, ends)
  local answers = {}
  for index, id in ipairs(ids) do answers[index] = cancel(id, records[index], ends[index]) end
  for _, held in pairs(find_running(told)) do hint('c ' .. held.lease.worker) end
  return answers
end

local function edit_all(ids, records, ends)
  local answers = {}
  for index, id in ipairs(ids) do answers[index] = ends[index] and 'f' or edit_one(id, records[index], edit) end
  return answers
end

local filter = cjson.decode(ARGV[3])
filter.with_ends = true
local ids, records, ends = selector(filter)({ unpack(ARGV, 4) })
local answers
if action == 'replay' then answers = replay_all(ids, records, ends)
elseif action == 'discard' then answers = discard_all(ids, ends)
elseif edit then answers = edit_all(ids, records, ends)
else answers = cancel_all(ids, records, ends) end
return table.concat(answers)
