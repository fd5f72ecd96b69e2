-- What waits in the outbox to be delivered to its shard.
-- ARGV: the most that are wanted.
-- Answers: for each the job, as job_at of insert.lua takes it.
local found = redis.call('HSCAN', B .. 'outbox', '0', 'COUNT', ARGV[1])[2]
local jobs = {}
for index = 2, #found, 2 do jobs[#jobs + 1] = { cmsgpack.unpack(found[index]) } end
return jobs
