-- Functions that change parts of a record. They cut the text instead of encoding it again, because cjson writes an
-- empty list as an empty object.
local function with_payload(record, payload)
  return string.match(record, '^[^\n]*\n') .. payload
end

-- Returns the place after the JSON string that begins at `at`.
local function behind_text(json, at)
  repeat
    at = string.find(json, '["\\]', at + 1)
    local is_escape = string.sub(json, at, at) == '\\'
    if is_escape then at = at + 1 end
  until not is_escape
  return at + 1
end

-- Queue and name are between the head start and the priority.
local function with_rank(record, priority, head_start)
  local created, queue_at = string.match(record, '^(%[%d+,)-?%d+,()')
  local name_at = behind_text(record, queue_at) + 1
  local name_end = behind_text(record, name_at)
  local rest = string.match(record, '^,[^,%]]+(.*)$', name_end)
  return created .. head_start .. ',' .. string.sub(record, queue_at, name_end) .. priority .. rest
end
