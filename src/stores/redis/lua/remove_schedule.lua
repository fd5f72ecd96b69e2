-- Removes a schedule and its last tick.
-- ARGV: schedule.
-- Answers: 1 if it was there.
return redis.call('HDEL', B .. 'schedules', ARGV[1])
