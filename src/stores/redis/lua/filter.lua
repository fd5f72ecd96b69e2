-- Which jobs a filter selects, as a function. A filter is JSON: states (letters: s scheduled, r ready, u running, c
-- completed, d dead, x cancelled), queues, names, tags and fingerprints (lists), from and before (finished at),
-- created_from and created_before; and the JSON texts that matching jobs contain: tag_texts, fingerprint_texts. Missing
-- parts select all jobs.
local function set_of(texts)
  if not texts then return nil end
  local found = {}
  for _, text in ipairs(texts) do found[text] = true end
  return found
end

local function is_between(time, from, before)
  return (not from or time >= from) and (not before or time < before)
end

-- Whether one of the texts occurs as JSON writes it. Saves decoding most jobs that don't match.
local function mentions(json, texts)
  for _, text in ipairs(texts) do
    if string.find(json, text, 1, true) then return true end
  end
  return false
end

local function has_tag(options, tags)
  local envelope = type(options) == 'table' and options.envelope
  for _, tag in ipairs(envelope and envelope.tags or {}) do
    if tags[tag] then return true end
  end
  return false
end

-- Head start, queue and name of a record. Most records have the same beginning, so few are decoded.
local known_heads = {}
local function beginning_of(record)
  local text = string.match(record, '^%[%d+,(-?%d+,"[^"\\]*","[^"\\]*",)')
  local known = text and known_heads[text]
  if known then return known end
  local head = head_of(record)
  known = { head_start = head[2], queue = head[3], name = head[4] }
  if text then known_heads[text] = known end
  return known
end

-- Returns a function from a list of ids to the selected ones, in the same order, with their records and ends.
local function selector(filter)
  local queues, names, tags = set_of(filter.queues), set_of(filter.names), set_of(filter.tags)
  local fingerprints = set_of(filter.fingerprints)
  local states, from, before = filter.states, tonumber(filter.from), tonumber(filter.before)
  local created_from, created_before = tonumber(filter.created_from), tonumber(filter.created_before)
  local by_end = states or from or before
  local by_time = created_from or created_before
  -- Waiting and running jobs are only distinguished if the filter does.
  local alive = states and string.gsub(states, '[^sru]', '') or ''

  local function fits_record(record)
    if by_time and not is_between(tonumber(string.match(record, '^%[(%d+)')), created_from, created_before) then
      return false
    end
    if queues or names then
      local beginning = beginning_of(record)
      if queues and not queues[beginning.queue] or names and not names[beginning.name] then return false end
    end
    if not tags then return true end
    local json = string.match(record, '^[^\n]*')
    return mentions(json, filter.tag_texts) and has_tag(cjson.decode(json)[10], tags)
  end

  local function fits_alive(id, record)
    if alive == '' then return false end
    if #alive == 3 then return true end
    local beginning = beginning_of(record)
    if alive == 's' then return redis.call('ZSCORE', B .. 'delay:' .. beginning.queue, id) end
    local wait = wait_of(id, beginning.queue, beginning.head_start)
    return string.find(alive, wait and wait.state or 'u', 1, true)
  end

  local function fits_end(id, record, ending)
    if from or before then
      local ended = ending and tonumber(string.match(ending, '%d+'))
      if not ended or not is_between(ended, from, before) then return false end
    end
    if not states then return true end
    if not ending then return fits_alive(id, record) end
    return string.find(states, string.sub(ending, 3, 3), 1, true)
  end

  local function fits_past(past)
    if not past or not mentions(past, filter.fingerprint_texts) then return false end
    local err = cjson.decode(past).e
    return err and fingerprints[cjson.decode(err).fingerprint]
  end

  -- The cheapest and most selective checks come first.
  return function(ids)
    if fingerprints then
      local failed = {}
      for index, past in ipairs(#ids > 0 and read_many(PAST, ids) or {}) do
        if fits_past(past) then failed[#failed + 1] = ids[index] end
      end
      ids = failed
    end
    if #ids == 0 then return ids, {}, {} end
    local selected, records, ends = {}, {}, {}
    local all_records, all_ends = read_many(JOBS, ids), (by_end or filter.with_ends) and read_many(ENDS, ids) or {}
    for index, id in ipairs(ids) do
      local record, ending = all_records[index], all_ends[index]
      if record and (not by_end or fits_end(id, record, ending)) and fits_record(record) then
        local at = #selected + 1
        selected[at], records[at], ends[at] = id, record, ending or false
      end
    end
    return selected, records, ends
  end
end
