-- Uses: jobs, leases.
-- Renews the lease of a worker that is registered, releases the leases that it does not know of, and tells what it
-- holds and what of that is to be cancelled.
-- ARGV: worker, then the tokens that are strangers to it.
-- Answers: whether it is alive, its tokens, and for each cancel token, position and reason (JSON).
write_though_full()
local worker = ARGV[1]
local lease_ms = redis.call('HGET', WORKERS, worker)
if not lease_ms then return { 0, {}, {} } end
redis.call('ZADD', EXPIRY, now + tonumber(lease_ms), worker)

for index = 2, #ARGV do
  local lease = lease_of(ARGV[index])
  if lease and lease.worker == worker then
    local scores, open = scores_of(lease), open_positions(lease)
    revoke(lease)
    count('running', lease.queue, -#open)
    for _, position in ipairs(open) do release(id_at(lease, position), lease.queue, scores[position + 1]) end
  end
end

local tokens, cancels = tokens_of(worker), {}
if is_used(CANCELS) then
  for _, token in ipairs(tokens) do
    local lease = lease_of(token)
    for _, position in ipairs(open_positions(lease)) do
      local reason = redis.call('HGET', CANCELS, id_at(lease, position))
      if reason then cancels[#cancels + 1] = { token, position, reason } end
    end
  end
end
return { 1, tokens, cancels }
