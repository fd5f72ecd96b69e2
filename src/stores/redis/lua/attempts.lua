-- Attempt records, as a function. They are in a hash of their own because the past is sent with every claim and decoded by
-- every promotion, and a job that failed often has kilobytes of records.

-- Adds a record (a line of JSON) and keeps the newest `keep`. Sets the number of records in `past`, which the caller writes. So
-- a job that has records also has a past, and `erase` need not look for records of jobs that have none.
local function keep_attempt(id, past, record, keep)
  if keep <= 0 then
    redis.call('HDEL', ATTEMPTS, id)
    past.n = nil
    return
  end
  local kept = past.n and redis.call('HGET', ATTEMPTS, id)
  local size = (kept and past.n or 0) + 1
  local lines = kept and kept .. '\n' .. record or record
  local first = 1
  for _ = keep + 1, size do first = string.find(lines, '\n', first, true) + 1 end
  redis.call('HSET', ATTEMPTS, id, string.sub(lines, first))
  past.n = math.min(size, keep)
end
