-- Uses: jobs, leases.
-- Forgets workers that are expired and hold nothing any more.
-- ARGV: the workers that are meant; none for all.
-- Answers: those that had not retired by themselves.
write_though_full()
local meant = {}
for _, worker in ipairs(ARGV) do meant[worker] = true end
local buried = {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now)) do
  if (#ARGV == 0 or meant[worker]) and #tokens_of(worker) == 0 then
    redis.call('ZREM', EXPIRY, worker)
    if redis.call('HDEL', WORKERS, worker) == 1 then buried[#buried + 1] = worker end
  end
end
return buried
