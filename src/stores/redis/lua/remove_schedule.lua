-- Forgets a schedule and what it has fired.
-- ARGV: schedule.
-- Answers: 1 if it was there.
return redis.call('HDEL', B .. 'schedules', ARGV[1])
