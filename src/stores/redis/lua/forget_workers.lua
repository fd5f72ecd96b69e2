-- Uses: jobs, leases.
-- Removes workers that are expired and hold no lease.
-- ARGV: the workers to remove; none for all.
-- Answers: those of them that had not retired.
write_though_full()
local meant = {}
for _, worker in ipairs(ARGV) do meant[worker] = true end
local forgotten = {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now)) do
  if (#ARGV == 0 or meant[worker]) and #tokens_of(worker) == 0 then
    redis.call('ZREM', EXPIRY, worker)
    redis.call('HDEL', AT_ONCE, worker)
    redis.call('HDEL', BEATS, worker)
    redis.call('HDEL', B .. 'handed', worker)
    if redis.call('HDEL', WORKERS, worker) == 1 then forgotten[#forgotten + 1] = worker end
  end
end
return forgotten
