-- Uses: jobs, waiting, by_id, insert, schedules.
-- Fires a slot: moves the schedule on and writes its job, if the slot is later than the last one fired.
-- ARGV: schedule, slot, next slot (empty: none), then the job as job_at takes it.
-- Answers: fired, already or missing.
local text = redis.call('HGET', B .. 'schedules', ARGV[1])
if not text then return 'missing' end
local last, spec = string.match(text, '^(%S+) %S+ (.*)$')
if is_fired(tonumber(ARGV[2]), last) then return 'already' end
local job = job_at(4)
local refusal = refuse_known({ job.id })
if refusal then return refusal end
local next_slot = ARGV[3] == '' and '-' or ARGV[3]
redis.call('HSET', B .. 'schedules', ARGV[1], ARGV[2] .. ' ' .. next_slot .. ' ' .. spec)
insert_keyed(job)
return 'fired'
