-- Notes of a kind, as functions.
--   notes:<kind>       id -> text
--   notes_until:<kind> when a note expires -> id; only for notes that expire
local function notes_of(kind)
  return B .. 'notes:' .. kind, B .. 'notes_until:' .. kind
end

-- Removes expired notes. Every call on a kind begins with this, so notes of a kind that is never listed don't pile up.
-- Redis has expiry of single fields only since 7.4.
local function forget_old_notes(kind)
  local texts, expiry = notes_of(kind)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', now)) do
    redis.call('HDEL', texts, id)
    redis.call('ZREM', expiry, id)
  end
end
