-- Notes of a kind, as functions.
--   notes:<kind>       id -> text
--   notes_until:<kind> when those are over that do not stay
local function notes_of(kind)
  return B .. 'notes:' .. kind, B .. 'notes_until:' .. kind
end

-- Every call on a kind begins with this, so that none piles up notes that nobody lists. There is no expiry of single fields
-- before Redis 7.4.
local function forget_old_notes(kind)
  local texts, over = notes_of(kind)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', over, '-inf', now)) do
    redis.call('HDEL', texts, id)
    redis.call('ZREM', over, id)
  end
end
