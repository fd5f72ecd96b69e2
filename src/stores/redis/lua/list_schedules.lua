-- The time, and all schedules: name and text, in turn.
return { int(now), redis.call('HGETALL', B .. 'schedules') }
