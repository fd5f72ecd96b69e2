-- Settles of a lease, as functions: forget and completed are the hot ones and decode nothing.

-- Returns the letter that answers each position (w written, a already settled, l lost), the positions that are open, and the
-- index of each of those among all.
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

-- The end of the JSON of a completed job: its worker.
local function completed_by(lease)
  return ',' .. cjson.encode(lease.worker)
end

-- Completes jobs; `details` continue the JSON of their ends.
local function settle_completed(lease, positions, ids, details)
  local scores, by = scores_of(lease), completed_by(lease)
  for index, position in ipairs(positions) do
    details[index] = scores[position + 1] .. ',1' .. details[index] .. by
  end
  into_final(ids, lease.queue, 'c', details)
end

-- Adds an attempt to the job's past: whether it counts, its error, its record.
local function add_attempt(id, counts, err, record, keep)
  if not (counts or err or record) then return end
  local past = past_of(id)
  if counts then past.a = (past.a or 0) + 1 end
  if err then past.e = err end
  if record then keep_attempt(id, past, record, keep) end
  write_past(id, past)
end

-- The type of each kind's value.
local VALUE_OF = { f = 'nil', c = 'string', r = 'number', s = 'number', l = 'nil', d = 'nil', x = 'string' }

-- Decodes one detail of a mixed settle: kind, value, error, record, number of records to keep. Missing parts are false or
-- left out. Returns nil and the reason if settle_one could not write it.
local function read_detail(json)
  local is_json, detail = pcall(cjson.decode, json)
  local expected = is_json and type(detail) == 'table' and VALUE_OF[detail[1]]
  if not expected then return nil, 'a settlement of an unknown kind' end
  local kind, value, err, record, keep = detail[1], detail[2] or nil, detail[3] or nil, detail[4] or nil, detail[5]
  if type(value) ~= expected then return nil, 'a settlement whose value is missing' end
  if (err or kind == 'r' or kind == 'd') and not is_error(err) then return nil, 'a settlement whose error is missing' end
  if record and (type(record) ~= 'string' or type(keep) ~= 'number') then return nil, 'a settlement with a bad record' end
  return detail
end

-- Checks all settles of the call before anything is written, because a script that fails half-way keeps what it wrote.
-- Keeps the details of mixed settles, decoded, by their place in ARGV. Returns the problem, or nil and where the
-- reports begin.
local mixed = {}
local function read_settles(at)
  for _ = 1, tonumber(ARGV[6]) do
    local mode, size = ARGV[at + 1], tonumber(ARGV[at + 2])
    -- f: all are deleted; c: all are completed; m: each detail names its kind.
    local is_known = mode == 'f' or mode == 'c' or mode == 'm'
    if not (is_known and size) then return 'settlements of an unknown mode' end
    local first = at + 3 + size
    for place = first, mode == 'm' and first + size - 1 or 0 do
      local detail, wrong = read_detail(ARGV[place])
      if not detail then return wrong end
      mixed[place] = detail
    end
    at = mode == 'f' and first or first + size
  end
  if at > #ARGV + 1 then return 'a settlement with a part missing' end
  return nil, at
end

-- `detail` is as read_detail returns it.
local function settle_one(lease, id, rank, detail)
  local queue = lease.queue
  local kind, value, err, record, keep = unpack(detail)
  if kind == 'f' then return erase({ id }) end
  local reason = (kind == 'r' or kind == 's') and redis.call('HGET', CANCELS, id)
  if reason then
    add_attempt(id, false, nil, record, keep)
    return finish(id, queue, 'x', rank, 1, ',' .. reason)
  end
  add_attempt(id, kind == 'r', err, record, keep)
  if kind == 'r' or kind == 's' then into_scheduled(id, queue, now + value)
  elseif kind == 'l' then release(id, queue, rank)
  elseif kind == 'd' then finish(id, queue, 'd', rank, 1, '')
  elseif kind == 'c' then finish(id, queue, 'c', rank, 1, value .. completed_by(lease))
  elseif kind == 'x' then finish(id, queue, 'x', rank, 1, ',' .. value)
  else error('HFBROKEN no kind ' .. kind) end
end

-- Settles each job by its own detail; `places` are the positions of these in ARGV.
local function settle_mixed(lease, positions, ids, places)
  local scores = scores_of(lease)
  for index, id in ipairs(ids) do
    settle_one(lease, id, scores[positions[index] + 1], mixed[places[index]])
  end
end

-- Settles jobs of one lease. ARGV from `at` on is token, mode, n, n positions and, unless the mode is f, n details. Returns
-- the letters and where the next lease begins.
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
  local ids, details = end_positions(lease, positions), {}
  if mode == 'f' then
    erase(ids)
    return letters, behind
  end
  for index, arg in ipairs(args) do
    local place = first + size + arg
    details[index] = mode == 'c' and ARGV[place] or place
  end
  if mode == 'c' then settle_completed(lease, positions, ids, details)
  else settle_mixed(lease, positions, ids, details) end
  return letters, behind
end
