-- Reads jobs in the outbox, which are to be delivered to the shards of their queues.
-- ARGV: about how many.
-- Answers: each job as job_at of insert.lua takes it.
local found = redis.call('HSCAN', B .. 'outbox', '0', 'COUNT', ARGV[1])[2]
local jobs = {}
for index = 2, #found, 2 do jobs[#jobs + 1] = { cmsgpack.unpack(found[index]) } end
return jobs
