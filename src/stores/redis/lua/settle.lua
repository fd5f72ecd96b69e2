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

-- The kinds of a mixed settle, by their letters:
--   value       the type of its value
--   needs_error whether it must have an error
--   comes_back  whether the job would wait for another attempt; if its cancel was requested, it is cancelled instead
--   counts      whether the attempt counts, for a job that comes back
--   settle      writes what becomes of the job
-- No field has a default: a kind that lacks one is unknown. Only mixed settles need the table, so they make it.
local known_kinds
local function kinds()
  if known_kinds then return known_kinds end
  local function schedule(lease, id, rank, value) into_scheduled(id, lease.queue, now + value) end
  known_kinds = {
    f = { value = 'nil', needs_error = false, comes_back = false, counts = false,
      settle = function(lease, id) erase({ id }) end },
    c = { value = 'string', needs_error = false, comes_back = false, counts = false,
      settle = function(lease, id, rank, value) finish(id, lease.queue, 'c', rank, 1, value .. completed_by(lease)) end },
    r = { value = 'number', needs_error = true, comes_back = true, counts = true, settle = schedule },
    s = { value = 'number', needs_error = false, comes_back = true, counts = false, settle = schedule },
    l = { value = 'nil', needs_error = false, comes_back = true, counts = false,
      settle = function(lease, id, rank) stand_again(id, lease.queue, rank) end },
    d = { value = 'nil', needs_error = true, comes_back = false, counts = false,
      settle = function(lease, id, rank) finish(id, lease.queue, 'd', rank, 1, '') end },
    x = { value = 'string', needs_error = false, comes_back = false, counts = false,
      settle = function(lease, id, rank, value) finish(id, lease.queue, 'x', rank, 1, ',' .. value) end },
  }
  return known_kinds
end

-- Returns nil for a kind that is unknown.
local function kind_of(letter)
  local kind = kinds()[letter]
  local is_whole = kind and kind.value and kind.settle
    and kind.needs_error ~= nil and kind.comes_back ~= nil and kind.counts ~= nil
  return is_whole and kind or nil
end

-- Decodes one detail of a mixed settle: kind, value, error, record, number of records to keep. Missing parts are false or
-- left out. Returns nil and the reason if settle_one could not write it.
local function read_detail(json)
  local is_json, detail = pcall(cjson.decode, json)
  local kind = is_json and type(detail) == 'table' and kind_of(detail[1])
  if not kind then return nil, 'a settlement of an unknown kind' end
  local value, err, record, keep = detail[2] or nil, detail[3] or nil, detail[4] or nil, detail[5]
  if type(value) ~= kind.value then return nil, 'a settlement whose value is missing' end
  if (err or kind.needs_error) and not is_error(err) then return nil, 'a settlement whose error is missing' end
  if record and (type(record) ~= 'string' or type(keep) ~= 'number') then return nil, 'a settlement with a bad record' end
  return detail
end

-- Checks all settles of the call before anything is written, because a script that fails half-way keeps what it wrote.
-- Keeps the details of mixed settles, decoded, by their place in ARGV. Returns the problem, or nil and where the
-- reports begin.
local mixed = {}
local function read_settles(at)
  for _ = 1, tonumber(ARGV[7]) do
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
  local letter, value, err, record, keep = unpack(detail)
  local kind = kinds()[letter]
  local reason = kind.comes_back and redis.call('HGET', CANCELS, id)
  if reason then
    add_attempt(id, false, nil, record, keep)
    return finish(id, lease.queue, 'x', rank, 1, ',' .. reason)
  end
  add_attempt(id, kind.counts, err, record, keep)
  kind.settle(lease, id, rank, value)
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
