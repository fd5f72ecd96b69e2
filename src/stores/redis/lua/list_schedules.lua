-- Answers the time, and all schedules: name, text, name, text … (schedules.lua).
return { int(now), redis.call('HGETALL', B .. 'schedules') }
