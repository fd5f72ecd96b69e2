-- Uses: jobs, leases, running.
-- Reads jobs as they are at one moment.
-- ARGV: ids.
-- Answers: for each that is there id, record, past, end, state (w waiting in the set named, r running, f final), set,
--       score, token, worker, claimedAt, 1 if its cancel was asked for, records of its attempts.
local records, pasts, ends = read_many(JOBS, ARGV), read_many(PAST, ARGV), read_many(ENDS, ARGV)
local attempts = is_used(ATTEMPTS) and read_many(ATTEMPTS, ARGV) or {}
local answers, running = {}, {}
for index, id in ipairs(ARGV) do
  if records[index] then
    local answer = { id, records[index], pasts[index] or '', ends[index] or '', 'f', '', '', '', '', '', '',
      attempts[index] or '' }
    if not ends[index] then
      local set, score = waits_in(id, head_of(records[index])[3])
      answer[5], answer[6], answer[7] = set and 'w' or 'r', set or '', score and int(score) or ''
      if not set then running[#running + 1] = id end
    end
    answers[#answers + 1] = answer
  end
end
local found = find_running(running)
for _, answer in ipairs(answers) do
  local held = found[answer[1]]
  if held then
    answer[7] = scores_of(held.lease)[held.position + 1]
    answer[8], answer[9], answer[10] = held.lease.token, held.lease.worker, int(held.lease.claimed)
    answer[11] = redis.call('HEXISTS', CANCELS, answer[1])
  end
end
return answers
