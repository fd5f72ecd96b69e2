-- Uses: schedules.
-- Fires a slot on a cluster, where the job's queue is another shard: moves the schedule on and puts the job into the
-- outbox, in one step. Whoever comes along delivers it, and only once.
-- ARGV: schedule, slot, next slot (empty: none), then the job as job_at of insert.lua takes it.
-- Answers: fired, already or missing.
local text = redis.call('HGET', B .. 'schedules', ARGV[1])
if not text then return 'missing' end
local last, spec = string.match(text, '^(%S+) %S+ (.*)$')
if is_fired(tonumber(ARGV[2]), last) then return 'already' end
local next_slot = ARGV[3] == '' and '-' or ARGV[3]
redis.call('HSET', B .. 'schedules', ARGV[1], ARGV[2] .. ' ' .. next_slot .. ' ' .. spec)
redis.call('HSET', B .. 'outbox', ARGV[4], cmsgpack.pack(unpack(ARGV, 4)))
return 'fired'
