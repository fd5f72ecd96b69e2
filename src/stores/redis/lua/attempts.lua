-- Records of attempts, as a function. They stand beside the past and not in it: the past is sent with every claim and
-- decoded by every promotion, and a job that failed often has kilobytes of records.

-- Puts a record (a line of JSON) behind those that are there; the newest `keep` stay. The caller writes `past`, which tells
-- how many there are: a job without a past has none, so that who forgets jobs looks for none where nobody has a past.
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
