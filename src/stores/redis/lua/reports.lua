-- Reports (progress and log lines of running jobs), as functions. They end the arguments of a call: the maximum number of lines
-- per job, then for each report its token, position, progress (JSON or empty), number of lines, lines (JSON).

-- Checks the arguments from `at` on before anything is written. Returns the problem, or nil.
local function read_reports(at)
  if not tonumber(ARGV[at]) then return 'reports without their number of lines' end
  at = at + 1
  while at <= #ARGV do
    local lines = tonumber(ARGV[at + 3])
    if not (tonumber(ARGV[at + 1]) and lines and lines >= 0) then return 'a report with a part missing' end
    at = at + 4 + lines
  end
  return at ~= #ARGV + 1 and 'a report with a part missing' or nil
end

-- Keeps the reports from `at` on. Ignores those of jobs that the worker does not hold any more.
local function keep_reports(at, worker)
  write_though_full()
  local most = tonumber(ARGV[at])
  at = at + 1
  while at <= #ARGV do
    local lines = tonumber(ARGV[at + 3])
    local lease, position = lease_of(ARGV[at]), tonumber(ARGV[at + 1])
    if lease and lease.worker == worker and is_position(lease, position) and not is_settled(lease, position) then
      local id = id_at(lease, position)
      local past = past_of(id)
      if ARGV[at + 2] ~= '' then past.p = ARGV[at + 2] end
      if lines > 0 then
        local log = past.l or {}
        for line = 1, lines do log[#log + 1] = ARGV[at + 3 + line] end
        past.l = { unpack(log, math.max(1, #log - most + 1)) }
      end
      write_past(id, past)
    end
    at = at + 4 + lines
  end
end
