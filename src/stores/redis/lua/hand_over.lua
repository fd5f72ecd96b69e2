-- Hands new jobs over to workers that offered to take them, as functions, instead of telling all workers of them. The
-- functions of claims are made only when there is an offer: making them costs as much as the enqueue of a job.
local MOST_JOBS, MOST_CHARS = 8, 65536
local filled = {}

announce = function(queue, jobs)
  filled[queue] = (filled[queue] or 0) + jobs
end

-- Claims up to `jobs` jobs of a queue for workers that offered to take them. Returns how many were handed over.
local function hand_over(queue, jobs)
  -- Include: leases, claim, offers.

  -- Returns an offer that is open, and drops those that are not.
  local function pick()
    local worker = redis.call('SRANDMEMBER', offering_key(queue))
    if not worker then return nil end
    local offer = offer_of(worker)
    local expiry = offer and offer.over_at > now and redis.call('ZSCORE', EXPIRY, worker)
    if expiry and tonumber(expiry) > now and redis.call('HEXISTS', WORKERS, worker) == 1 then return offer end
    if offer then drop_offer(offer) end
    redis.call('SREM', offering_key(queue), worker)
    return pick()
  end

  -- Publishes a lease. False if nobody listens, because the worker's process is gone.
  local function send(offer, lease)
    local text = cjson.encode({ offer.worker, offer.nth, queue, lease })
    local receivers = redis.pcall('PUBLISH', CHANNEL .. ':' .. offer.channel, 'l ' .. text)
    return type(receivers) == 'number' and receivers > 0
  end

  local function note(offer, token, size)
    redis.call('HSET', HANDED, offer.worker, (redis.call('HGET', HANDED, offer.worker) or '') .. token .. ' ')
    offer.left = offer.left - size
    if offer.left > 0 then write_offer(offer) else drop_offer(offer) end
  end

  local function take_back(lease)
    local taken = lease_of(lease[1])
    local scores, ids = scores_of(taken), revoke(taken)
    for index, id in ipairs(ids) do
      into_ready(queue, head_start_of(lease[5][index]), false, { scores[index], id })
    end
  end

  local done = 0
  while done < jobs do
    local offer = pick()
    local lease = offer and claim(offer.worker, queue, math.min(jobs - done, offer.left), false, 0)[1]
    if not lease then break end
    if send(offer, lease) then
      note(offer, lease[1], #lease[5])
      done = done + #lease[5]
    else
      drop_offer(offer)
      take_back(lease)
    end
  end
  return done
end

-- Tells of the queues that had an empty lane before. ARGV from `from` on are `jobs` new jobs.
local function tell_filled(jobs, from)
  local chars = 0
  for index = from, jobs <= MOST_JOBS and #ARGV or 0 do chars = chars + #ARGV[index] end
  local is_small = jobs <= MOST_JOBS and chars <= MOST_CHARS
  for queue, new in pairs(filled) do
    local is_offered = is_small and redis.call('EXISTS', B .. 'offering:' .. queue) == 1
    if not is_offered or hand_over(queue, new) < new then hint('r ' .. queue) end
  end
end
