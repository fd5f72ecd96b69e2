-- Uses: jobs, waiting, by_id, final, leases, release, attempts.
-- Takes leases away and puts their jobs where it was decided, only where the lease still stands in the name of a worker
-- that is still expired, and only what is still open in it.
-- ARGV: the most records that a job keeps; of each lease token, worker, count of jobs, then of each job position, s
--       (scheduled), d (dead) or l (released: it cannot have been running), crashes, delay in ms, error (JSON), record of
--       the attempt (JSON).
-- Answers: for each lease a letter for each job: s, d, l, x (cancelled, if that was requested meanwhile) or - (left).
write_though_full()
local WIDTH = 6

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
  keep_attempt(id, past, ARGV[at + 5], tonumber(ARGV[1]))
  write_past(id, past)
  if reason then
    finish(id, lease.queue, 'x', rank, 1, ',' .. reason)
    return 'x'
  elseif to == 'd' then finish(id, lease.queue, 'd', rank, 1, '')
  else into_scheduled(id, lease.queue, now + tonumber(ARGV[at + 3])) end
  return to
end

-- Whether every open position of the lease is among those that were decided about: all of them are placed, or none.
local function is_complete(lease, at, size)
  local decided = {}
  for job = 1, size do decided[tonumber(ARGV[at + 3 + WIDTH * (job - 1)])] = true end
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
    -- Its next lease, which a later call may take, stands behind this one.
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
