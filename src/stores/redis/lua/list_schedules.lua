-- All schedules: name and text, in turn. A script, because drivers make what they like of a HGETALL.
return redis.call('HGETALL', B .. 'schedules')
