-- Uses: jobs, by_id, final.
-- Deletes finished jobs beyond their retention, the oldest first, no more than the limit.
-- ARGV: limit, then for completed, dead and cancelled jobs how long (ms) and how many of them (empty: all) to keep.
-- Answers: how many were deleted.
write_though_full()
local limit, pruned = tonumber(ARGV[1]), 0
for index, set in ipairs({ 'completed', 'dead', 'cancelled' }) do
  local key = B .. set
  local beyond = redis.call('ZCOUNT', key, '-inf', now - tonumber(ARGV[2 * index]))
  local keep = tonumber(ARGV[2 * index + 1])
  if keep then beyond = math.max(beyond, redis.call('ZCARD', key) - keep) end
  beyond = math.min(beyond, limit - pruned)
  if beyond > 0 then forget(redis.call('ZRANGE', key, 0, beyond - 1)) end
  pruned = pruned + math.max(0, beyond)
end
return pruned
