-- Uses: jobs, waiting, by_id, insert, hand_over.
-- Writes all jobs of a flush or none of them, once for each number of a sender. If another job holds a job's unique
-- key, the job's conflict rule is applied to that one, if it is waiting.
-- ARGV: sender, number, number of jobs; each job as job_at takes it.
-- Answers: for each job the id of the resulting job and a letter, all in one text; '' for "all inserted".
local sender, seq = ARGV[1], tonumber(ARGV[2])
local answered = remembered(sender, seq)
if answered then return answered end

local jobs, ids = {}, {}
for index = 1, tonumber(ARGV[3]) do
  jobs[index] = job_at(8 * index - 4)
  local fault = fault_of(jobs[index])
  if fault then return refused(fault) end
  ids[index] = jobs[index].id
end
local refusal = refuse_known(ids)
if refusal then return refusal end

local answers, plain = {}, true
for index, job in ipairs(jobs) do
  answers[index] = insert_keyed(job)
  plain = plain and string.sub(answers[index], -1) == 'i'
end
local text = plain and '' or table.concat(answers)
remember_flush(sender, seq, text)
if next(filled) then tell_filled(#jobs, 4) end
return text
