-- Uses: jobs, leases.
-- Reads the leases of expired and retired workers, each as a whole, until there are about `limit` jobs. Writes nothing.
-- ARGV: limit.
-- Answers: for each lease its token, worker, queue, claimedAt, the time, how many of the worker's open jobs may be
-- running (empty: all), and for each open job its position, id, head of its record, past, and 1 if its cancel was
-- requested.
local limit, found, leases = tonumber(ARGV[1]), 0, {}
for _, worker in ipairs(redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now)) do
  local at_once = redis.call('HGET', AT_ONCE, worker) or ''
  for _, token in ipairs(tokens_of(worker)) do
    if found >= limit then return leases end
    local lease, jobs = lease_of(token), {}
    for index, position in ipairs(open_positions(lease)) do
      local id = id_at(lease, position)
      local head = string.match(redis.call('HGET', JOBS, id), '^[^\n]*')
      jobs[index] = { position, id, head, redis.call('HGET', PAST, id), redis.call('HEXISTS', CANCELS, id) }
    end
    found = found + #jobs
    leases[#leases + 1] = { token, worker, lease.queue, lease.claimed, now, at_once, jobs }
  end
end
return leases
