-- Releases claimed jobs, as a function.

-- Makes a job ready again with the rank it had; the attempt does not count. Cancels it instead if that was requested.
local function release(id, queue, rank)
  local reason = redis.call('HGET', CANCELS, id)
  if reason then return finish(id, queue, 'x', rank, 1, ',' .. reason) end
  into_ready(queue, head_start_of(redis.call('HGET', JOBS, id)), is_suspect(id), { rank, id })
end
