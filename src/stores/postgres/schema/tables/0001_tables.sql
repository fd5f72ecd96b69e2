-- The tables. The table a job is in tells its state:
--
--   ready, scheduled   waiting; one row per job
--   lease and batch    running; one row each per claim
--   dead               failed for good; one row per job
--   history and batch  completed; one row per settle of a claim
--   ended              cancelled, and the completed jobs that need their own row
--
-- Times are milliseconds since 1970 by the server's clock. The view job_queue shows every job with timestamps. These
-- files can be run manually as they are; the program replaces the schema and the table prefix with yours.

-- A waiting job. Columns hold what SQL needs; facts is the rest, as JSON that only the program reads:
--   [id, name, priority, head start, max attempts, max crashes, options]
-- payload is JSON text, or null if it is larger than 512 bytes: then it is in the table payload.
-- past holds what happened so far: error, attempts, log, progress.

-- A vacuum triggered by inserts alone (autovacuum_vacuum_insert_threshold) is turned off for tables whose rows are
-- short-lived: it would write every page to the log again, 1 kB per job with payloads of that size, for no benefit.

-- Due and claimable. A lane is a priority (0 to 9), or 10 for crash suspects, which are claimed one at a time.
-- rank = due_at - head start of the priority. Two waiting jobs never change their order, so aging costs nothing.
create table holdfast.ready (
  id uuid primary key,
  rank bigint not null,
  due_at bigint not null,
  created_at bigint not null,
  attempt integer not null default 0,
  crashes integer not null default 0,
  lane smallint not null,
  priority smallint not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  -- How long the key is held: -1 until the first claim, 0 until the job is final, otherwise this many ms.
  unique_hold bigint,
  unique_key text collate "C",
  past jsonb,
  facts text not null,
  payload text
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1
);
create index on holdfast.ready (queue, lane, rank, id);

-- Due later. Retries wait here too.
create table holdfast.scheduled (
  id uuid primary key,
  due_at bigint not null,
  head_start bigint not null,
  created_at bigint not null,
  attempt integer not null default 0,
  crashes integer not null default 0,
  priority smallint not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  unique_hold bigint,
  unique_key text collate "C",
  past jsonb,
  facts text not null,
  payload text
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1
);
create index on holdfast.scheduled (due_at, id);

-- Payloads larger than 512 bytes. They are written once, by the enqueue, and never copied.
create table holdfast.payload (
  id uuid primary key,
  body text not null
) with (
  toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_threshold = -1
);
alter table holdfast.payload alter body set storage external;

-- Worker incarnations. The heartbeat renews this one row, however many jobs the worker runs. Only the first at_once of
-- its open jobs, in order of token and position, may be running; null: any of them. nth: greatest number of a heartbeat
-- so far.
create table holdfast.worker (
  id uuid primary key,
  lease_ms bigint not null,
  expires_at bigint not null,
  at_once integer,
  nth integer not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- One row per claim: the fence. It is small because every settle rewrites it; what was claimed is in batch.
--   done       a bit per position, set once that job is settled; the settle that sets the last bit deletes the row
--   keyed      some of its jobs hold a unique key
--   has_large  some of its payloads are in the table payload
--   kept       history refers to its batch
--   strays     as in batch
--   cancels    position -> {"reason"} of a requested cancel, with "heard" once its worker reported that it took effect
--   reported   position -> {"log", "progress"} that the handler reported since the claim
create sequence holdfast.lease_token;
create table holdfast.lease (
  token bigint primary key default nextval('holdfast.lease_token'),
  claimed_at bigint not null,
  worker uuid not null,
  keyed boolean not null,
  has_large boolean not null,
  kept boolean not null default false,
  queue text collate "C" not null,
  done varbit not null,
  strays varbit,
  cancels jsonb,
  reported jsonb
) with (
  fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
  autovacuum_vacuum_cost_delay = 0
);
-- With the token, because settles look for both: by the worker alone they would read all of its dead leases.
create index on holdfast.lease (worker, token);

-- The jobs of a claim, written once and never changed. ids, jobs and payloads are in order of position. jobs is the
-- inside of a JSON array (holdfast.unpack_job reads one element), payloads are separated by U+001E, which no JSON
-- contains. low and high bound the ids, so that one job is found without a row per job. Ids that lie more than a minute
-- from the middle one are strays: they are not within the bounds, and get their own row when they complete. wide: the
-- bounds lie in different blocks of ids, see holdfast.batches_around.
create table holdfast.batch (
  token bigint not null,
  claimed_at bigint not null,
  size integer not null,
  has_large boolean not null,
  wide boolean not null,
  low uuid not null,
  high uuid not null,
  queue text collate "C" not null,
  first_name text collate "C" not null,
  last_name text collate "C" not null,
  strays varbit,
  ids uuid[] not null,
  jobs text not null,
  payloads text not null
) partition by range (claimed_at);
-- Compressing data that is often deleted a moment later costs more than it saves.
alter table holdfast.batch alter ids set storage external, alter jobs set storage external, alter payloads set storage external;
create index on holdfast.batch (token);
create index on holdfast.batch (wide, high, low);
create index on holdfast.batch (wide, low, high);
create table holdfast.batch_rest partition of holdfast.batch default;

-- Completed jobs: one row for all positions of a claim that one settle completed. mask has a bit for each of them, null
-- means all. run_ms and results are in order of the positions in the mask; results is null if there are none.
create table holdfast.history (
  finished_at bigint not null,
  token bigint not null,
  claimed_at bigint not null,
  worker uuid not null,
  size integer not null,
  has_large boolean not null,
  queue text collate "C" not null,
  mask varbit,
  run_ms integer[] not null,
  results text[],
  dropped boolean[]
) partition by range (finished_at);
create index on holdfast.history (token);
create index on holdfast.history (finished_at);
create table holdfast.history_rest partition of holdfast.history default;

-- Cancelled jobs, and completed ones whose handler reported something or whose id is a stray.
create table holdfast.ended (
  id uuid primary key,
  finished_at bigint not null,
  due_at bigint not null,
  created_at bigint not null,
  attempt integer not null,
  crashes integer not null,
  run_ms bigint,
  token bigint,
  worker uuid,
  completed boolean not null,
  result_dropped boolean not null default false,
  queue text collate "C" not null,
  name text collate "C" not null,
  unique_key text collate "C",
  past jsonb,
  facts text not null,
  payload text,
  result text,
  reason text
);
create index on holdfast.ended (completed, finished_at, id);
create index on holdfast.ended (id) where not completed;

-- Dead letters.
create table holdfast.dead (
  id uuid primary key,
  finished_at bigint not null,
  due_at bigint not null,
  created_at bigint not null,
  attempt integer not null,
  crashes integer not null,
  priority smallint not null,
  head_start bigint not null,
  queue text collate "C" not null,
  name text collate "C" not null,
  fingerprint text collate "C" not null,
  unique_hold bigint,
  unique_key text collate "C",
  error jsonb not null,
  past jsonb,
  facts text not null,
  payload text
);
create index on holdfast.dead (finished_at, id);
create index on holdfast.dead (fingerprint, id);

-- Has a row unless the server has crashed: an unlogged table is empty after a recovery. See holdfast.skip_lost_tokens.
create unlogged table holdfast.server_up (
  one boolean primary key default true check (one)
);
insert into holdfast.server_up default values;

-- Tokens between these two may belong to claims that a crash of the server undid, see holdfast.was_finished. A row per
-- crash; never pruned.
create table holdfast.lost_tokens (
  after_token bigint not null,
  before_token bigint primary key
);

-- Leases that were taken away from their worker. Any other token that is gone, and not lost, was fully settled. Never
-- pruned, because a settle under such a token is refused forever.
create table holdfast.revoked (
  token bigint primary key
);

-- Flushes of enqueues that were written: a repeated flush is answered from here. answers is null if all were inserted.
create table holdfast.intake (
  id uuid primary key,
  at bigint not null,
  answers json
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
create index on holdfast.intake (at);

-- Holders of unique keys. until is set if the key is held for a time, whatever happens to the job.
create table holdfast.unique_key (
  key text collate "C" primary key,
  job uuid not null,
  until bigint
);
create index on holdfast.unique_key (until) where until is not null;

-- Every queue that ever had a job, its settings, and how many jobs it has in each state. Running jobs are counted from
-- the leases. The numbers lag behind by what is in count_change; the sum of both is exact.
create table holdfast.queue (
  name text collate "C" primary key,
  paused boolean not null default false,
  scheduled bigint not null default 0,
  ready bigint not null default 0,
  completed bigint not null default 0,
  dead bigint not null default 0,
  cancelled bigint not null default 0
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Changes of those numbers, written in the same step as the change of state. Insert only, so that no transaction waits
-- for another; maintenance adds them to the rows in queue.
create table holdfast.count_change (
  queue text collate "C" not null,
  scheduled integer not null default 0,
  ready integer not null default 0,
  completed integer not null default 0,
  dead integer not null default 0,
  cancelled integer not null default 0
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- Schedules. last_tick is the last tick that fired; it changes in the same step as the enqueue of the tick's job.
create table holdfast.schedule (
  id text collate "C" primary key,
  spec text not null,
  next_tick bigint,
  last_tick bigint
);

-- The maintenance leader, and the end of its term.
create table holdfast.leader (
  one boolean primary key default true check (one),
  candidate uuid not null,
  until bigint not null
) with (fillfactor = 50);

-- Small texts that all processes share. A note is expired once until has passed, even if it is not deleted yet.
create table holdfast.note (
  kind text collate "C" not null,
  id text collate "C" not null,
  text text not null,
  until bigint,
  primary key (kind, id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
