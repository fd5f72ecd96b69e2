-- Uses: jobs, leases, attempts.
-- Takes leases away and puts their jobs where it was decided, only where the lease still stands in the name of a worker
-- that is still expired, and only what is still open in it.
-- ARGV: the most records that a job keeps; of each lease token, worker, count of jobs, then of each job position, s
--       (scheduled) or d (dead), crashes, delay in ms, error (JSON), record of the attempt (JSON).
-- Answers: for each lease a letter for each job: s, d, x (cancelled, if that was asked for meanwhile) or - (left).
write_though_full()
local WIDTH = 6

local function crashed(lease, position, rank, at)
  local id, to = id_at(lease, position), ARGV[at + 1]
  local reason = redis.call('HGET', CANCELS, id)
  local past = past_of(id)
  past.c = tonumber(ARGV[at + 2])
  if not reason then past.e = ARGV[at + 4] end
  keep_attempt(id, past, ARGV[at + 5], tonumber(ARGV[1]))
  write_past(id, past)
  if reason then
    finish(id, lease.queue, 'x', rank, 1, ',' .. reason)
    return 'x'
  elseif to == 'd' then finish(id, lease.queue, 'd', rank, 1, '')
  else make_wait(id, lease.queue, now + tonumber(ARGV[at + 3])) end
  return to
end

local answers = {}
local at = 2
while at <= #ARGV do
  local token, worker, size = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
  local lease = lease_of(token)
  local expiry = redis.call('ZSCORE', EXPIRY, worker)
  local stands = lease and lease.worker == worker and (not expiry or tonumber(expiry) <= now)
  local letters = {}
  if stands then
    local scores = scores_of(lease)
    count('running', lease.queue, -#open_positions(lease))
    revoke(lease)
    for job = 1, size do
      local first = at + 3 + WIDTH * (job - 1)
      local position = tonumber(ARGV[first])
      letters[job] = is_settled(lease, position) and '-' or crashed(lease, position, scores[position + 1], first)
    end
  end
  answers[#answers + 1] = stands and table.concat(letters) or string.rep('-', size)
  at = at + 3 + WIDTH * size
end
return answers
