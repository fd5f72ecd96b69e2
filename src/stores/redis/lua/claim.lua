-- A claim, as a function: the one way out of ready. It takes the first jobs of a queue that is not paused and puts them
-- under a token greater than all before.

-- Puts jobs under a new lease. Returns it as the answer has it.
local function grant(worker, queue, popped, counter)
  local ids, scores = {}, {}
  for index = 1, #popped, 2 do
    ids[#ids + 1] = popped[index]
    scores[#scores + 1] = popped[index + 1]
  end
  local last = tonumber(redis.call('GET', B .. 'token') or '0')
  local token_time = math.max(last + 1, math.floor(now_us / TOKEN_UNIT_US))
  local token = int(token_time * TOKENS_A_UNIT + counter)
  redis.call('SET', B .. 'token', int(token_time))
  local all_ids = table.concat(ids)
  local batch = cmsgpack.pack(worker, queue, now, all_ids, scores)
  check(redis.call('HSET', BATCH, token, batch) == 1, 'token', token, 'is used already')
  check(redis.call('ZADD', LEASES, 0, worker .. ' ' .. token) == 1, 'lease', token, 'is listed already')
  count('running', queue, #ids)
  free_keys(ids, 'r')
  local pasts = is_used(PAST) and read_many(PAST, ids) or {}
  return { token, now, all_ids, table.concat(scores, ' '), read_many(JOBS, ids), pasts }
end

local function comes_first(id, rank, other_id, other_rank)
  return rank < other_rank or (rank == other_rank and id < other_id)
end

-- Returns the first `limit` ready jobs of all lanes in order of rank, then id (id, score, id, score … as ZPOPMIN answers), and
-- how many of them are from which key.
local function first_ready(keys, limit)
  local fronts, first, taken = {}, {}, {}
  for index, key in ipairs(keys) do
    fronts[index] = { key = key, jobs = redis.call('ZRANGE', key, 0, limit - 1, 'WITHSCORES'), at = 1 }
  end
  while #first < 2 * limit do
    local best
    for _, front in ipairs(fronts) do
      front.id, front.rank = front.jobs[front.at], tonumber(front.jobs[front.at + 1])
      if front.id and (not best or comes_first(front.id, front.rank, best.id, best.rank)) then best = front end
    end
    if not best then break end
    first[#first + 1] = best.id
    first[#first + 1] = best.jobs[best.at + 1]
    best.at = best.at + 2
  end
  for index, front in ipairs(fronts) do taken[index] = (front.at - 1) / 2 end
  return first, taken
end

-- Returns the key of the lane whose first `limit` jobs all rank before those of the other lanes, if there is one: then no lanes
-- have to be merged.
local function leading_key(keys, limit)
  if #keys == 1 then return keys[1] end
  local fronts = {}
  for index, key in ipairs(keys) do
    local first = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    fronts[index] = { key = key, id = first[1], rank = tonumber(first[2]) }
  end
  table.sort(fronts, function(a, b) return comes_first(a.id, a.rank, b.id, b.rank) end)
  local last = redis.call('ZRANGE', fronts[1].key, limit - 1, limit - 1, 'WITHSCORES')
  local leads = #last > 0 and comes_first(last[1], tonumber(last[2]), fronts[2].id, fronts[2].rank)
  return leads and fronts[1].key or nil
end

local function pop_ready(keys, limit)
  local leading = leading_key(keys, limit)
  if leading then return redis.call('ZPOPMIN', leading, limit) end
  local first, taken = first_ready(keys, limit)
  for index, key in ipairs(keys) do
    if taken[index] > 0 then
      local removed = redis.call('ZREMRANGEBYRANK', key, 0, taken[index] - 1)
      check(removed == taken[index], 'fewer jobs in', key, 'than were read')
    end
  end
  return first
end

-- Returns the key of the first suspect, if fewer than `limit` other jobs come before it.
local function key_of_suspect(ready, suspects, limit)
  local key, id, rank
  for _, one in ipairs(suspects) do
    local first = redis.call('ZRANGE', one, 0, 0, 'WITHSCORES')
    local its_rank = tonumber(first[2])
    if its_rank and (not key or comes_first(first[1], its_rank, id, rank)) then key, id, rank = one, first[1], its_rank end
  end
  if not key then return nil end
  local plain = first_ready(ready, limit)
  if #plain < 2 * limit then return key end
  return comes_first(id, rank, plain[#plain - 1], tonumber(plain[#plain])) and key or nil
end

-- Returns the keys of the lanes that have jobs. Removes the other lanes from `queues` once there are many.
local MOST_LANES = 16
local function ready_keys(queue, takes_suspect)
  local ready, suspects, used = {}, {}, {}
  local lanes = lanes_of(queue)
  for _, lane in ipairs(lanes) do
    local plain, suspect = key_of('ready:', lane, queue), key_of('suspects:', lane, queue)
    local has_suspects = takes_suspect and redis.call('EXISTS', suspect) == 1
    if has_suspects then suspects[#suspects + 1] = suspect end
    if #lanes == 1 or redis.call('EXISTS', plain) == 1 then ready[#ready + 1] = plain end
    if #lanes > MOST_LANES and redis.call('EXISTS', plain, suspect) > 0 then used[#used + 1] = lane end
  end
  if #lanes > MOST_LANES then
    write_though_full()
    redis.call('HSET', QUEUES, queue, ' ' .. table.concat(used, ' ') .. ' ')
  end
  return ready, suspects
end

-- Claims for a registered worker. Returns at most one lease of plain jobs and one of a suspect; none if the queue is paused.
local function claim(worker, queue, limit, takes_suspect, counter)
  local leases = {}
  if limit < 1 or redis.call('SISMEMBER', PAUSED, queue) == 1 then return leases end
  local ready, suspects = ready_keys(queue, takes_suspect)
  local suspect = #suspects > 0 and key_of_suspect(ready, suspects, limit)
  local room = suspect and limit - 1 or limit
  local popped = room > 0 and #ready > 0 and pop_ready(ready, room) or {}
  if #popped > 0 then leases[1] = grant(worker, queue, popped, counter) end
  if suspect then leases[#leases + 1] = grant(worker, queue, redis.call('ZPOPMIN', suspect), counter) end
  return leases
end
