-- Uses: jobs, leases, by_id.
-- Scans a part of each of these and deletes outdated entries: revoked tokens, unique keys that were held for a time,
-- inactive senders, and the ids of deleted jobs in buckets, if those are most of the bucket.
-- ARGV: a cursor for each of the four, then how long senders are kept (ms).
-- Answers: the four cursors to continue from, and how many entries were deleted.
write_though_full()
local rules = {
  { REVOKED, function(text) return tonumber(string.match(text, '^%d+')) + DAY_MS end },
  { UNIQUE, function(text) return tonumber(string.match(text, ' (%d+)$') or math.huge) end },
  { SENDERS, function(text, sender)
    -- A job of the outbox that is delivered again must be recognised even if no process ran for hours.
    local kept = string.sub(sender, 1, 5) == 'fire:' and DAY_MS or tonumber(ARGV[5])
    return tonumber(string.match(text, '^%d+ (%d+)')) + kept
  end },
}
local cursors, forgotten = {}, 0
for index, rule in ipairs(rules) do
  local key, over_at = unpack(rule)
  local cursor, found = unpack(redis.call('HSCAN', key, ARGV[index], 'COUNT', 500))
  for entry = 1, #found, 2 do
    if over_at(found[entry + 1], found[entry]) <= now then
      forgotten = forgotten + redis.call('HDEL', key, found[entry])
    end
  end
  cursors[index] = cursor
end

-- Removes the ids of jobs that are gone. Returns how many.
local function pack_bucket(key)
  local kept, gone = {}, 0
  for _, id in ipairs(ids_in(redis.call('GET', key))) do
    if redis.call('HEXISTS', JOBS, id) == 1 then kept[#kept + 1] = id else gone = gone + 1 end
  end
  redis.call('SET', key, table.concat(kept))
  return gone
end

-- Packs the buckets after `from` that are mostly ids of jobs that are gone. Returns where to continue; 0 at the end.
local MOST_BUCKETS, MOST_IDS = 1000, 2000
local function pack_buckets(from)
  local buckets = redis.call('ZRANGEBYLEX', BUCKETS, from == '0' and '-' or '(' .. from, '+', 'LIMIT', 0, MOST_BUCKETS)
  if #buckets == 0 then return '0' end
  local looked = 0
  for index, alive in ipairs(redis.call('HMGET', ALIVE, unpack(buckets))) do
    local key = B .. 'ids:' .. buckets[index]
    local size = redis.call('STRLEN', key) / ID_CHARS
    if size > 2 * tonumber(alive) then
      forgotten = forgotten + pack_bucket(key)
      looked = looked + size
      if looked >= MOST_IDS then return buckets[index] end
    end
  end
  return #buckets == MOST_BUCKETS and buckets[#buckets] or '0'
end

cursors[4] = pack_buckets(ARGV[4])
return { cursors, forgotten }
