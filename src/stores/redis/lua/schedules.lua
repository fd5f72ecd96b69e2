-- Schedules, as functions.
--   schedules   name -> "last next spec": the last tick that fired and the next one, in ms; - for none

-- Whether a tick has fired, from the last one as it is stored. A last tick in the future fired before the clock was set
-- back: it counts only for itself.
local function is_fired(tick, last_text)
  if last_text == '-' then return false end
  local last = tonumber(last_text)
  return tick == last or (tick < last and last <= now)
end

-- Advances an existing schedule: `tick` fired, and `next_tick` is next (empty: none).
local function move_on(name, tick, next_tick, spec)
  local text = tick .. ' ' .. (next_tick == '' and '-' or next_tick) .. ' ' .. spec
  check(redis.call('HSET', B .. 'schedules', name, text) == 0, 'there was no schedule', name)
end
