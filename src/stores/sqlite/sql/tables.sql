-- All tables. Each name begins with `holdfast_`, which a store in the caller's database replaces with its prefix. Times
-- are milliseconds since 1970 by the clock of this host.
--
-- A job's body is written once, into holdfast_job. Thin tables say where the job is, and a move touches only them:
--   in holdfast_ready: ready · in holdfast_scheduled: scheduled · in holdfast_ended: final · in none of them: running,
--   and listed in holdfast_leased.

create table holdfast_job (
  seq integer primary key,
  id text not null unique,
  name text not null,
  queue text not null,
  priority integer not null,
  -- Head start of the priority in ms. Rank = due - head.
  head integer not null,
  due integer not null,
  created integer not null,
  -- Claims that count, without the one of the lease that holds the job or under which it ended.
  attempt integer not null,
  max_attempts integer not null,
  crashes integer not null,
  max_crashes integer not null,
  unique_key text,
  -- How long the key is held: 'ready' or 'unfinished', or for this many ms from the enqueue; both null without a key.
  key_while text,
  key_ms integer,
  -- Checksum of the row, see damage.ts.
  sum integer not null,
  -- Fields that few jobs have, as JSON: group, limits, envelope.
  options text,
  -- Last, so that reading the columns before it does not load overflow pages.
  payload text not null
) strict;

-- Claimed in order of due - head, then id. suspect: 1 if the job lost a worker before; such jobs are claimed alone.
create table holdfast_ready (
  queue text not null,
  suspect integer not null,
  head integer not null,
  due integer not null,
  id text not null,
  seq integer not null,
  primary key (queue, suspect, head, due, id)
) strict, without rowid;

create table holdfast_scheduled (
  due integer not null,
  seq integer not null,
  primary key (due, seq)
) strict, without rowid;

-- One row per claim: the fence. Small, because every settle rewrites it; what was claimed is in holdfast_leased.
create table holdfast_lease (
  token integer primary key autoincrement,
  worker text not null,
  queue text not null,
  claimed_at integer not null,
  size integer not null,
  open integer not null,
  -- A 1 for each settled position; null while all are open.
  done text,
  -- Whether a claimed job has a unique key.
  keyed integer not null
) strict;
create index holdfast_lease_worker on holdfast_lease (worker);

-- The jobs of a lease in order of position, as a JSON array of seq. Never rewritten.
create table holdfast_leased (
  token integer primary key,
  seqs text not null
) strict;

-- Leases that were taken away from their worker. Never deleted: their tokens stay lost, and they are rare.
create table holdfast_revoked (
  token integer primary key,
  -- The done mask of the lease at that time.
  done text
) strict;

-- Cancels of running jobs. heard: 1 once the worker has reported that the handler's signal has aborted.
create table holdfast_cancel (
  token integer not null,
  position integer not null,
  reason text,
  heard integer not null,
  primary key (token, position)
) strict, without rowid;

create table holdfast_ended (
  seq integer primary key,
  state text not null,
  finished integer not null,
  -- Lease under which it ended; null if it was waiting.
  token integer,
  -- Of a completed job: its worker, how long its handler ran, and its result as JSON (dropped: 1 if too large).
  worker text,
  run_ms real,
  result text,
  dropped integer not null,
  -- Of a cancelled job.
  reason text,
  -- Checksum of the row.
  sum integer not null
) strict;
create index holdfast_ended_finished on holdfast_ended (state, finished);

-- History of a job. Only jobs that failed, or whose handlers reported something, have a row.
create table holdfast_past (
  seq integer primary key,
  -- The newest failure, as JSON, and its fingerprint.
  error text,
  fingerprint text,
  -- JSON arrays, oldest first.
  attempts text,
  log text,
  progress text,
  -- Checksum of the row.
  sum integer not null
) strict;

-- Holders of unique keys. until: null if it is held by the state of the job.
create table holdfast_unique_key (
  key text primary key,
  id text not null,
  until integer
) strict, without rowid;
create index holdfast_unique_key_until on holdfast_unique_key (until) where until is not null;

-- Flushes that were written: a repeat is answered from here. answers: null if every job was inserted. Their ids begin
-- with the time, so the oldest come first without an index, which would be one of seven pages that an enqueue writes.
create table holdfast_intake (
  id text primary key,
  at integer not null,
  answers text
) strict, without rowid;

-- Worker incarnations. Only the first at_once of a worker's open jobs, in order of token and position, may be running;
-- null: any of them. nth: greatest number of a heartbeat so far. process: its process, see process-identity.ts.
create table holdfast_worker (
  id text primary key,
  lease_ms integer not null,
  expires_at integer not null,
  at_once integer,
  nth integer not null,
  process text
) strict, without rowid;

-- Jobs per queue and state, counted as they move.
create table holdfast_queue (
  name text primary key,
  paused integer not null default 0,
  scheduled integer not null default 0,
  ready integer not null default 0,
  running integer not null default 0,
  completed integer not null default 0,
  dead integer not null default 0,
  cancelled integer not null default 0
) strict, without rowid;

create table holdfast_schedule (
  id text primary key,
  spec text not null,
  next_tick integer,
  last_tick integer
) strict, without rowid;

create table holdfast_note (
  kind text not null,
  id text not null,
  text text not null,
  -- Null: it does not expire.
  until integer,
  primary key (kind, id)
) strict, without rowid;

-- At most one row.
create table holdfast_leader (
  only integer primary key check (only = 1),
  id text not null,
  until integer not null,
  -- Its process, see process-identity.ts.
  process text
) strict;
