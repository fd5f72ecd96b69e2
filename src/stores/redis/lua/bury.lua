-- Uses: jobs, leases.
-- Forgets workers that are expired and hold nothing any more.
-- Answers: those that had not retired by themselves.
write_though_full()
local buried = {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now)) do
  if #tokens_of(worker) == 0 then
    redis.call('ZREM', EXPIRY, worker)
    if redis.call('HDEL', WORKERS, worker) == 1 then buried[#buried + 1] = worker end
  end
end
return buried
