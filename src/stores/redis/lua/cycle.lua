-- Uses: jobs, leases, attempts, settle.
-- Settles, then claims: one step. A position is settled once, by whoever's lease it is; a claim takes from the front of
-- a queue that is not paused, for a worker that is registered, and puts what it takes under a token greater than all
-- before. Nothing is written before the lease was checked. A full Redis refuses none of it: the first write is the end of a
-- lease or a ZPOPMIN, which only shrink, or else the mask, which sees to it itself.
-- ARGV: worker, queue (empty: no claim), limit, 1 for a suspect too, the client's counter, number of leases to settle;
--       each lease as settle_lease takes it.
-- Answers: whether the worker is alive, the letters for each lease, and for each lease claimed its token, claimedAt,
--       ids and scores, records, pasts.
local worker, queue, limit = ARGV[1], ARGV[2], tonumber(ARGV[3])

local letters = {}
local at = 7
for index = 1, tonumber(ARGV[6]) do letters[index], at = settle_lease(at, worker) end

local function grant(popped)
  local ids, scores = {}, {}
  for index = 1, #popped, 2 do
    ids[#ids + 1] = popped[index]
    scores[#scores + 1] = popped[index + 1]
  end
  local last = tonumber(redis.call('GET', B .. 'token') or '0')
  local tick = math.max(last + 1, math.floor(now_us / TICK_US))
  local token = int(tick * TICK + tonumber(ARGV[5]))
  redis.call('SET', B .. 'token', int(tick))
  redis.call('HSET', BATCH, token, cmsgpack.pack(worker, queue, now, table.concat(ids), scores))
  redis.call('ZADD', LEASES, 0, worker .. ' ' .. token)
  count('running', queue, #ids)
  free_keys(ids, 'r')
  return { token, now, popped, read_many(JOBS, ids), is_used(PAST) and read_many(PAST, ids) or {} }
end

-- The first suspect goes with the others if fewer than `limit` plain jobs rank before it.
local function takes_suspect(ready, suspects)
  local suspect = redis.call('ZRANGE', suspects, 0, 0, 'WITHSCORES')
  if #suspect == 0 then return false end
  local plain = redis.call('ZRANGE', ready, limit - 1, limit - 1, 'WITHSCORES')
  if #plain == 0 then return true end
  local mine, theirs = tonumber(suspect[2]), tonumber(plain[2])
  return mine < theirs or (mine == theirs and suspect[1] < plain[1])
end

local alive = redis.call('HEXISTS', WORKERS, worker)
local leases = {}
if alive == 1 and queue ~= '' and limit > 0 and redis.call('SISMEMBER', PAUSED, queue) == 0 then
  local ready, suspects = B .. 'ready:' .. queue, B .. 'suspects:' .. queue
  local with_suspect = ARGV[4] == '1' and takes_suspect(ready, suspects)
  local room = with_suspect and limit - 1 or limit
  local popped = room > 0 and redis.call('ZPOPMIN', ready, room) or {}
  if #popped > 0 then leases[1] = grant(popped) end
  if with_suspect then leases[#leases + 1] = grant(redis.call('ZPOPMIN', suspects)) end
end
return { alive, letters, leases }
