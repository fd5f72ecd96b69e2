-- Uses: jobs, leases.
-- Forgets a part of what has had its time: revoked tokens, keys that were held for a time, lanes that nobody uses.
-- ARGV: for each of the three where the sweep stands, then how long lanes are kept (ms).
-- Answers: where it stands now, and how many it forgot.
write_though_full()
local rules = {
  { REVOKED, function(text) return tonumber(string.match(text, '^%d+')) + DAY_MS end },
  { UNIQUE, function(text) return tonumber(string.match(text, ' (%d+)$') or math.huge) end },
  { LANES, function(text, lane)
    -- What an outbox delivered must be recognised also after everybody was away for hours.
    local kept = string.sub(lane, 1, 5) == 'fire:' and DAY_MS or tonumber(ARGV[4])
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
return { cursors, forgotten }
