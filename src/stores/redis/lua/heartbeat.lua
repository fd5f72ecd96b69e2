-- Uses: jobs, waiting, by_id, final, leases, release.
-- Renews a registered worker, records the cancels that took effect in it, and releases leases whose claim answer it
-- never got (undelivered).
-- ARGV: worker, how many of its jobs can run at once (empty: as before), the number of this heartbeat (empty: none),
-- how many
--       cancels took effect, token and position of each, then the tokens of undelivered leases.
-- Answers: 1 if the worker is registered, its tokens, the token, position and reason (JSON) of each cancel that has not taken
--       effect yet, and the paused queues.
write_though_full()
local worker = ARGV[1]
local lease_ms = redis.call('HGET', WORKERS, worker)
if not lease_ms then return { 0, {}, {}, {} } end
redis.call('ZADD', EXPIRY, now + tonumber(lease_ms), worker)
-- A heartbeat that arrives after a later one is out of date.
local nth = tonumber(ARGV[3])
local is_late = nth and nth < tonumber(redis.call('HGET', BEATS, worker) or 0)
if nth and not is_late then redis.call('HSET', BEATS, worker, nth) end
if ARGV[2] ~= '' and not is_late then redis.call('HSET', AT_ONCE, worker, ARGV[2]) end

local undelivered = 5 + 2 * tonumber(ARGV[4])
for index = 5, undelivered - 1, 2 do
  local lease, position = lease_of(ARGV[index]), tonumber(ARGV[index + 1])
  if lease and lease.worker == worker and is_position(lease, position) and not is_settled(lease, position) then
    local id = id_at(lease, position)
    if redis.call('HEXISTS', CANCELS, id) == 1 then redis.call('HSET', HEARD, id, 1) end
  end
end

for index = undelivered, #ARGV do
  local lease = lease_of(ARGV[index])
  if lease and lease.worker == worker then release_lease(lease) end
end

local tokens, cancels = tokens_of(worker), {}
if is_used(CANCELS) then
  for _, token in ipairs(tokens) do
    local lease = lease_of(token)
    for _, position in ipairs(open_positions(lease)) do
      local id = id_at(lease, position)
      local reason = redis.call('HGET', CANCELS, id)
      if reason and redis.call('HEXISTS', HEARD, id) == 0 then cancels[#cancels + 1] = { token, position, reason } end
    end
  end
end
return { 1, tokens, cancels, redis.call('SMEMBERS', PAUSED) }
