-- Uses: jobs, waiting, by_id, insert, schedules.
-- Fires a tick of a schedule, if it is later than the last one that fired: advances the schedule and writes its job.
-- ARGV: schedule, tick, next tick (empty: none), then the job as job_at takes it.
-- Answers: fired, already or missing.
local text = redis.call('HGET', B .. 'schedules', ARGV[1])
if not text then return 'missing' end
local last, spec = string.match(text, '^(%S+) %S+ (.*)$')
if is_fired(tonumber(ARGV[2]), last) then return 'already' end
local job = job_at(4)
local fault = fault_of(job)
if fault then return refused(fault) end
local refusal = refuse_known({ job.id })
if refusal then return refusal end
move_on(ARGV[1], ARGV[2], ARGV[3], spec)
insert_keyed(job)
return 'fired'
