-- Uses: jobs, waiting, by_id, final, leases, release, attempts.
-- Takes leases away from expired workers and moves their jobs to the states that the caller chose. Skips a lease that
-- was settled or whose worker returned since the caller's read, and positions that were settled since then.
-- ARGV: maximum number of attempt records per job; for each lease its token, worker and number of jobs; for each
--       job its position, s (schedule it), d (it is dead) or l (release it: it was not running), crashes, delay in ms,
--       error (JSON), record of the attempt (JSON).
-- Answers: for each lease a letter for each job: s, d, l, x (cancelled, if that was requested meanwhile) or - (skipped).
local WIDTH = 6
local TARGETS = { s = true, d = true, l = true }

-- Returns the problem with the arguments, or nil.
local function find_fault()
  local at = 2
  while at <= #ARGV do
    local size = tonumber(ARGV[at + 2])
    if not size then return 'a rescue without its number of jobs' end
    for first = at + 3, at + 2 + WIDTH * size, WIDTH do
      local position, to, crashes, delay, err, record = unpack(ARGV, first, first + WIDTH - 1)
      if not TARGETS[to] then return 'a rescue to an unknown state' end
      if not (tonumber(position) and tonumber(crashes) and tonumber(delay) and record) then
        return 'a rescue with a part missing'
      end
      if to ~= 'l' and not is_error(err) then return 'a rescue whose error is missing' end
    end
    at = at + 3 + WIDTH * size
  end
  return at ~= #ARGV + 1 and 'a rescue with a part missing' or nil
end

local keep = tonumber(ARGV[1])
local fault = not keep and 'a rescue without its number of records' or find_fault()
if fault then return refused(fault) end
write_though_full()

-- Moves one job whose worker is gone; ARGV from `at` on is the decision about it. Returns its letter.
local function crashed(lease, position, rank, at)
  local id, to = id_at(lease, position), ARGV[at + 1]
  local reason = redis.call('HGET', CANCELS, id)
  if to == 'l' then
    release(id, lease.queue, rank)
    return reason and 'x' or 'l'
  end
  local past = past_of(id)
  past.c = tonumber(ARGV[at + 2])
  if not reason then past.e = ARGV[at + 4] end
  keep_attempt(id, past, ARGV[at + 5], keep)
  write_past(id, past)
  if reason then
    finish(id, lease.queue, 'x', rank, 1, ',' .. reason)
    return 'x'
  end
  if to == 'd' then finish(id, lease.queue, 'd', rank, 1, '')
  else into_scheduled(id, lease.queue, now + tonumber(ARGV[at + 3])) end
  return to
end

-- Whether the caller decided about every open position of the lease, once: either all of them are moved, or none.
local function is_complete(lease, at, size)
  local decided = {}
  for job = 1, size do
    local position = tonumber(ARGV[at + 3 + WIDTH * (job - 1)])
    if decided[position] or not is_position(lease, position) then return false end
    decided[position] = true
  end
  for _, position in ipairs(open_positions(lease)) do
    if not decided[position] then return false end
  end
  return true
end

local answers = {}
local at = 2
while at <= #ARGV do
  local token, worker, size = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local lease = lease_of(token)
  local expiry = redis.call('ZSCORE', EXPIRY, worker)
  local is_expired = not expiry or tonumber(expiry) <= now
  local stands = lease and lease.worker == worker and is_expired and is_complete(lease, at, size)
  local letters = {}
  if stands then
    local scores, before = scores_of(lease), { mask = lease.mask }
    local open = #revoke(lease)
    -- Jobs start in the order of their leases: fewer of the worker's other jobs may have been running.
    local at_once = redis.call('HGET', AT_ONCE, worker)
    if at_once then redis.call('HSET', AT_ONCE, worker, int(math.max(0, tonumber(at_once) - open))) end
    for job = 1, size do
      local first = at + 3 + WIDTH * (job - 1)
      local position = tonumber(ARGV[first])
      letters[job] = is_settled(before, position) and '-' or crashed(lease, position, scores[position + 1], first)
    end
  end
  answers[#answers + 1] = stands and table.concat(letters) or string.rep('-', size)
  at = at + 3 + WIDTH * size
end
return answers
