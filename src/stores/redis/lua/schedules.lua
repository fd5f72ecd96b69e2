-- Schedules, as functions.

-- Whether a slot is fired already, from the last one as it is stored. One that lies in the future was fired before the
-- clock was put back: it stands for itself alone.
local function is_fired(slot, last_text)
  if last_text == '-' then return false end
  local last = tonumber(last_text)
  return slot == last or (slot < last and last <= now)
end
