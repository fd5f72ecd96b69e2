-- Uses: jobs, waiting, by_id, insert, schedules.
-- Fires a tick of a schedule on a cluster, where the job's queue is in another shard: advances the schedule and puts
-- the job into the outbox, in one step. The process that fired it delivers it, or the next promote of any process does;
-- it is written once.
-- ARGV: schedule, tick, next tick (empty: none), then the job as job_at takes it.
-- Answers: fired, already or missing.
local text = redis.call('HGET', B .. 'schedules', ARGV[1])
if not text then return 'missing' end
local last, spec = string.match(text, '^(%S+) %S+ (.*)$')
if is_fired(tonumber(ARGV[2]), last) then return 'already' end
local fault = fault_of(job_at(4))
if fault then return refused(fault) end
move_on(ARGV[1], ARGV[2], ARGV[3], spec)
check(redis.call('HSET', B .. 'outbox', ARGV[4], cmsgpack.pack(unpack(ARGV, 4))) == 1, ARGV[4], 'is in the outbox twice')
return 'fired'
