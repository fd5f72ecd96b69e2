-- The tables. A job is in exactly one of ready, scheduled, lease, dead and history: the table is the state, and a job
-- moves by single statements. Times are milliseconds since 1970 by the server's clock; the view job_queue shows them as
-- timestamps. Every file of this folder runs by hand as it stands; the program writes its own schema and table prefix in
-- place of "holdfast." first.

create schema if not exists holdfast;

-- The one clock. A volatile call is evaluated once for each row, so queries ask for (select holdfast.now_ms()).
create function holdfast.now_ms() returns bigint language sql volatile parallel safe as $$
  select (extract(epoch from clock_timestamp()) * 1000)::bigint
$$;

-- The body of a job is what never changes while it lives, as JSON that the client wrote, so that a move copies one value:
--   [id, name, payload, priority, head start, max attempts, max crashes, unique key, unique hold, options]
--     payload      JSON text as it was given, as a string; null where it is long and stands in the table payload.
--     unique hold  how long the key is held: -1 until the first claim, 0 until the job is final, else so many ms.
--     options      group, limits and envelope; null where all of them are empty.
-- long says that the payload stands apart. past is what happened to it so far: the newest error, the newest log lines, the progress.

-- Admitted and due. A lane is a priority (0 to 9), or 10 for all that have lost a worker and are claimed one at a time.
-- rank = due time - head start of the priority: two waiting jobs never change their order, so aging costs nothing.
create table holdfast.ready (
  id uuid primary key,
  rank bigint not null,
  due_at bigint not null,
  created_at bigint not null,
  attempt integer not null default 0,
  crashes integer not null default 0,
  lane smallint not null,
  long boolean not null default false,
  queue text collate "C" not null,
  unique_key text,
  past jsonb,
  body text not null
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 200000
);
create index on holdfast.ready (queue, lane, rank, id);

-- Due later; retries wait here too. rank and lane as they will be.
create table holdfast.scheduled (
  id uuid primary key,
  rank bigint not null,
  due_at bigint not null,
  created_at bigint not null,
  attempt integer not null default 0,
  crashes integer not null default 0,
  lane smallint not null,
  long boolean not null default false,
  queue text collate "C" not null,
  unique_key text,
  past jsonb,
  body text not null
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0
);
create index on holdfast.scheduled (due_at, id);

-- Worker incarnations. The heartbeat renews this one row, however many jobs the worker runs.
create table holdfast.worker (
  id uuid primary key,
  lease_ms bigint not null,
  expires_at bigint not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- One row a claim: the fence. done has a bit for each position, set once that job is settled; the statement that sets the
-- last one deletes the row. ids and jobs go by position; jobs is JSON text, and a job in it is [due at, body] where
-- nothing has happened to it yet, else [due at, body, attempt, crashes, created at, past].
-- cancels: position -> {"reason"} of a requested cancel. said: position -> what its handler said since the claim. keyed:
-- whether any of its jobs has a unique key or a long payload, which a settle must look after.
create table holdfast.lease (
  token bigint generated always as identity primary key,
  worker uuid not null,
  claimed_at bigint not null,
  keyed boolean not null,
  queue text collate "C" not null,
  done varbit not null,
  cancels jsonb,
  said jsonb,
  ids uuid[] not null,
  jobs text[] not null
) with (
  fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0
);
-- Compressing what is deleted a moment later costs more than it saves.
alter table holdfast.lease alter jobs set storage external, alter ids set storage external;
create index on holdfast.lease (worker);

-- Leases that were taken away from their worker, for good: any other token that is gone was settled to its end.
create table holdfast.revoked (
  token bigint primary key
);

-- Flushes of enqueues that were written: a repeat is answered from here. answers is null where all were inserted.
create table holdfast.intake (
  id uuid primary key,
  at bigint not null,
  answers json
) with (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);
create index on holdfast.intake (at);

-- Payloads above 2 kB, which claims and settles would otherwise copy.
create table holdfast.payload (
  id uuid primary key,
  body text not null
);
alter table holdfast.payload alter body set storage external;

-- Who holds which unique key. until is set where it is held for a time, whatever becomes of the job.
create table holdfast.unique_key (
  key text collate "C" primary key,
  job uuid not null,
  until bigint
);
create index on holdfast.unique_key (until) where until is not null;

-- Settings of queues, and the names of those whose jobs are all forgotten.
create table holdfast.queue (
  name text collate "C" primary key,
  paused boolean not null default false
);

-- Failed for good, kept for replay. job as in a lease.
create table holdfast.dead (
  id uuid primary key,
  finished_at bigint not null,
  queue text collate "C" not null,
  job json not null,
  error jsonb not null,
  said jsonb
);
create index on holdfast.dead (finished_at, id);

-- Completed and cancelled, by the day they finished: forgetting a day is dropping its partition. What no partition takes
-- (the upkeep did not run for days) goes to history_rest. job as in a lease.
create table holdfast.history (
  id uuid not null,
  finished_at bigint not null,
  token bigint,
  run_ms bigint,
  cancelled boolean not null default false,
  result_dropped boolean not null default false,
  queue text collate "C" not null,
  job text not null,
  said jsonb,
  result text,
  reason text
) partition by range (finished_at);
create index on holdfast.history (id);
create index on holdfast.history using brin (finished_at);
create table holdfast.history_rest partition of holdfast.history default;

-- Recurring jobs. last_slot is the only truth about what was fired; it moves together with the job that it fired.
create table holdfast.schedule (
  id text collate "C" primary key,
  spec text not null,
  next_slot bigint,
  last_slot bigint
);

-- Who does the upkeep, and until when.
create table holdfast.leader (
  one boolean primary key default true check (one),
  candidate uuid not null,
  until bigint not null
) with (fillfactor = 50);
