-- Settles of a lease, as functions: forget and completed are the hot ones and decode nothing.

-- Which of the positions are open, and the letter that answers each: w written, a already, l lost.
local function check_positions(lease, first, count_of, worker)
  local letters, open, args = {}, {}, {}
  local seen = {}
  for index = 0, count_of - 1 do
    local position = tonumber(ARGV[first + index])
    local letter = 'w'
    if lease.worker ~= worker or not is_position(lease, position) then letter = 'l'
    elseif seen[position] or is_settled(lease, position) then letter = 'a'
    else
      seen[position] = true
      open[#open + 1] = position
      args[#args + 1] = index
    end
    letters[index + 1] = letter
  end
  return table.concat(letters), open, args
end

local function ids_at(lease, positions)
  local ids = {}
  for index, position in ipairs(positions) do ids[index] = id_at(lease, position) end
  return ids
end

local function drop_cancels(ids)
  if is_used(CANCELS) then write_many('HDEL', CANCELS, ids) end
end

-- Completed or dead, and nothing is kept.
local function settle_forgotten(ids)
  write_many('HDEL', JOBS, ids)
  if is_used(PAST) then
    write_many('HDEL', PAST, ids)
    if is_used(ATTEMPTS) then write_many('HDEL', ATTEMPTS, ids) end
  end
  drop_cancels(ids)
  free_keys(ids)
end

-- Ends the JSON of what this lease's worker completes.
local function completed_by(lease)
  return ',' .. cjson.encode(lease.worker)
end

-- Completed: `details` go on with their JSON.
local function settle_completed(lease, positions, ids, details)
  local scores = scores_of(lease)
  local ends, finished = {}, {}
  local at, by = int(now), completed_by(lease) .. ']'
  for index, id in ipairs(ids) do
    ends[2 * index - 1] = id
    ends[2 * index] = '["c",' .. at .. ',' .. scores[positions[index] + 1] .. ',1' .. details[index] .. by
    finished[2 * index - 1] = at
    finished[2 * index] = id
  end
  write_many('HSET', ENDS, ends)
  write_many('ZADD', B .. 'completed', finished)
  count('completed', lease.queue, #ids)
  drop_cancels(ids)
  free_keys(ids)
end

-- What an attempt leaves with its job: whether it counts, its error, its record.
local function leave(id, counts, err, record, keep)
  if not (counts or err or record) then return end
  local past = past_of(id)
  if counts then past.a = (past.a or 0) + 1 end
  if err then past.e = err end
  if record then keep_attempt(id, past, record, keep) end
  write_past(id, past)
end

-- `detail` is kind, value, error, record and how many records are kept; false for what is missing.
local function settle_one(lease, id, rank, detail)
  local queue = lease.queue
  local kind, value, err, record, keep = unpack(detail)
  if kind == 'f' then return settle_forgotten({ id }) end
  local reason = (kind == 'r' or kind == 's') and redis.call('HGET', CANCELS, id)
  if reason then
    leave(id, false, nil, record, keep)
    return finish(id, queue, 'x', rank, 1, ',' .. reason)
  end
  leave(id, kind == 'r', err, record, keep)
  if kind == 'r' or kind == 's' then make_wait(id, queue, now + value)
  elseif kind == 'l' then release(id, queue, rank)
  elseif kind == 'd' then finish(id, queue, 'd', rank, 1, '')
  elseif kind == 'c' then finish(id, queue, 'c', rank, 1, value .. completed_by(lease))
  else finish(id, queue, 'x', rank, 1, ',' .. value) end
end

-- Each in its own way: `details` are JSON.
local function settle_mixed(lease, positions, ids, details)
  local scores = scores_of(lease)
  for index, id in ipairs(ids) do
    settle_one(lease, id, scores[positions[index] + 1], cjson.decode(details[index]))
  end
end

-- One lease: ARGV from `at` on is token, mode, n, n positions and, but for forget, n details. Answers the letters and
-- where the next one begins.
local function settle_lease(at, worker)
  local token, mode, size = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local first = at + 3
  local behind = first + size + (mode == 'f' and 0 or size)
  local lease = lease_of(token)
  if not lease then
    local letters = {}
    for index = 0, size - 1 do letters[index + 1] = answer_of_gone(token, tonumber(ARGV[first + index])) end
    return table.concat(letters), behind
  end
  local letters, positions, args = check_positions(lease, first, size, worker)
  if #positions == 0 then return letters, behind end
  local ids, details = ids_at(lease, positions), {}
  close(lease, positions)
  count('running', lease.queue, -#positions)
  if mode == 'f' then
    settle_forgotten(ids)
    return letters, behind
  end
  for index, arg in ipairs(args) do details[index] = ARGV[first + size + arg] end
  if mode == 'c' then settle_completed(lease, positions, ids, details)
  else settle_mixed(lease, positions, ids, details) end
  return letters, behind
end
