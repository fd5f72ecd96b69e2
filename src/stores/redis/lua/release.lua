-- Gives claimed jobs back, as functions.

-- Makes a job ready again with the rank it had; the attempt does not count.
local function stand_again(id, queue, rank)
  into_ready(queue, head_start_of(redis.call('HGET', JOBS, id)), is_suspect(id), { rank, id })
end

-- The same, but cancels the job if that was requested.
local function release(id, queue, rank)
  local reason = redis.call('HGET', CANCELS, id)
  if reason then return finish(id, queue, 'x', rank, 1, ',' .. reason) end
  stand_again(id, queue, rank)
end

-- Takes a lease away and gives back what is open of it.
local function release_lease(lease)
  local scores = scores_of(lease)
  local ids, positions = revoke(lease)
  for at, position in ipairs(positions) do release(ids[at], lease.queue, scores[position + 1]) end
end
