-- Uses: jobs, waiting, leases, running.
-- Reads jobs as they are at one moment.
-- ARGV: ids.
-- Answers: for each existing job id, record, past, end, state (r ready, s scheduled, u running, f final), due time of a
--       waiting job or rank of a running one, token, worker, claimedAt, 1 if its cancel was requested, attempt records.
local records, pasts, ends = read_many(JOBS, ARGV), read_many(PAST, ARGV), read_many(ENDS, ARGV)
local attempts = is_used(ATTEMPTS) and read_many(ATTEMPTS, ARGV) or {}
local answers, running = {}, {}
for index, id in ipairs(ARGV) do
  if records[index] then
    local answer = { id, records[index], pasts[index] or '', ends[index] or '', 'f', '', '', '', '', '',
      attempts[index] or '' }
    if not ends[index] then
      local wait = wait_of(id, head_of(records[index])[3], head_start_of(records[index]))
      answer[5], answer[6] = wait and wait.state or 'u', wait and int(wait.due) or ''
      if not wait then running[#running + 1] = id end
    end
    answers[#answers + 1] = answer
  end
end
local found = find_running(running)
for _, answer in ipairs(answers) do
  local held = found[answer[1]]
  if held then
    answer[6] = scores_of(held.lease)[held.position + 1]
    answer[7], answer[8], answer[9] = held.lease.token, held.lease.worker, int(held.lease.claimed)
    answer[10] = redis.call('HEXISTS', CANCELS, answer[1])
  end
end
return answers
