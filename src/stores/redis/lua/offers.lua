-- Offers of workers to take jobs as they are enqueued, as functions. What is handed over under an offer and does not arrive
-- before the worker's next claim is released by that claim.
--   offers            worker -> number of the offer, jobs left, when it ends, channel, queues (JSON)
--   offering:<queue>  the workers whose offer includes this queue
--   handed            worker -> tokens of the leases that were handed over since its last claim
local OFFERS, HANDED = B .. 'offers', B .. 'handed'
-- Longer than any offer: what a worker leaves behind that is gone.
local OFFERS_MS = 20000

local function offering_key(queue)
  return B .. 'offering:' .. queue
end

-- Returns the worker's offer, or nil.
local function offer_of(worker)
  local text = redis.call('HGET', OFFERS, worker)
  if not text then return nil end
  local nth, left, over_at, channel, queues = string.match(text, '^(%d+) (%d+) (%d+) (%S+) (.*)$')
  return { worker = worker, nth = tonumber(nth), left = tonumber(left), over_at = tonumber(over_at), channel = channel,
    queues = cjson.decode(queues) }
end

local function drop_offer(offer)
  redis.call('HDEL', OFFERS, offer.worker)
  for _, queue in ipairs(offer.queues) do redis.call('SREM', offering_key(queue), offer.worker) end
end

local function write_offer(offer)
  local text = { int(offer.nth), int(offer.left), int(offer.over_at), offer.channel, cjson.encode(offer.queues) }
  redis.call('HSET', OFFERS, offer.worker, table.concat(text, ' '))
end

-- Ends the worker's offer. Releases what was handed over and has not arrived.
local function close_offer(worker, json)
  local handed = redis.call('HGET', HANDED, worker)
  if handed then
    write_though_full()
    local arrived = {}
    for _, token in ipairs(cjson.decode(json).received) do arrived[token] = true end
    for token in string.gmatch(handed, '%d+') do
      local lease = not arrived[token] and lease_of(token)
      if lease and lease.worker == worker then release_lease(lease) end
    end
    redis.call('HDEL', HANDED, worker)
  end
  local offer = offer_of(worker)
  if offer then drop_offer(offer) end
end

-- Opens an offer, if the claim got less than it asked for. Its jobs count. Returns since when it is open, or false.
local function open_offer(worker, json, leases, limit)
  local taken = 0
  for _, lease in ipairs(leases) do taken = taken + #lease[5] end
  if taken >= limit then return false end
  local offer = cjson.decode(json)
  if offer.jobs <= taken then return false end
  write_though_full()
  write_offer({ worker = worker, nth = offer.nth, left = offer.jobs - taken, over_at = now + offer.forMs,
    channel = offer.channel, queues = offer.queues })
  redis.call('PEXPIRE', OFFERS, OFFERS_MS)
  for _, queue in ipairs(offer.queues) do
    redis.call('SADD', offering_key(queue), worker)
    redis.call('PEXPIRE', offering_key(queue), OFFERS_MS)
  end
  return now
end
