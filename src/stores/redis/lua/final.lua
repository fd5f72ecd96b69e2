-- How jobs end and how they are deleted, as functions. Every job ends through into_final and is deleted by erase.
--   ends   id -> [state,finishedAt,rank,1 if the last attempt counts, …]; state c (then runMs, 1 if its result was
--          dropped, result, worker), d, or x (then its reason)
--   completed, dead, cancelled   finishedAt -> id
--   dead_ids   dead jobs in order of id: replays and groups go through all of them
local FINAL_SETS = { c = 'completed', d = 'dead', x = 'cancelled' }

local function drop_cancels(ids)
  if not is_used(CANCELS) then return end
  write_many('HDEL', CANCELS, ids)
  if is_used(HEARD) then write_many('HDEL', HEARD, ids) end
end

-- The one way into a final state, for jobs of one queue. `details` continue the JSON behind the time.
local function into_final(ids, queue, state, details)
  local set, at = FINAL_SETS[state], int(now)
  check(set, 'no final state', state)
  local ends, finished = {}, {}
  for index, id in ipairs(ids) do
    ends[2 * index - 1], ends[2 * index] = id, '["' .. state .. '",' .. at .. ',' .. details[index] .. ']'
    finished[2 * index - 1], finished[2 * index] = at, id
  end
  check(write_many('HSET', ENDS, ends) == #ids, 'a job ends twice')
  check(write_many('ZADD', B .. set, finished) == #ids, 'a job is in', set, 'twice')
  if state == 'd' then
    local by_id = {}
    for index, id in ipairs(ids) do by_id[2 * index - 1], by_id[2 * index] = 0, id end
    check(write_many('ZADD', B .. 'dead_ids', by_id) == #ids, 'a job is in dead_ids twice')
  end
  count(set, queue, #ids)
  drop_cancels(ids)
  free_keys(ids)
end

-- `detail` ends the JSON array; `ran` is 1 if the last attempt counts.
local function finish(id, queue, state, rank, ran, detail)
  into_final({ id }, queue, state, { rank .. ',' .. ran .. detail })
end

-- The one way out of a final state, back to ready or out of the store, for jobs of one queue.
local function leave_final(ids, queue, state)
  local set = FINAL_SETS[state]
  check(write_many('HDEL', ENDS, ids) == #ids, 'a job has no end')
  check(write_many('ZREM', B .. set, ids) == #ids, 'a job is not in', set)
  if state == 'd' then check(write_many('ZREM', B .. 'dead_ids', ids) == #ids, 'a job is not in dead_ids') end
  count(set, queue, -#ids)
end

-- The one way out of the store, for jobs that are no longer in any state.
local function erase(ids)
  check(write_many('HDEL', JOBS, ids) == #ids, 'a job without a record')
  if is_used(PAST) then
    write_many('HDEL', PAST, ids)
    if is_used(ATTEMPTS) then write_many('HDEL', ATTEMPTS, ids) end
  end
  drop_cancels(ids)
  free_keys(ids)
  remove_from_index(ids)
end

-- Deletes final jobs.
local function forget(ids)
  local records, groups = read_many(JOBS, ids), {}
  for index, ending in ipairs(read_many(ENDS, ids)) do
    local queue, state = head_of(records[index])[3], string.sub(ending, 3, 3)
    local group = groups[state .. queue] or { queue = queue, state = state, ids = {} }
    groups[state .. queue] = group
    group.ids[#group.ids + 1] = ids[index]
  end
  for _, group in pairs(groups) do leave_final(group.ids, group.queue, group.state) end
  erase(ids)
end
