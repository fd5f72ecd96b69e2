-- Wake-ups travel by NOTIFY, once per statement and queue, never once per job.

-- The channel of this schema and prefix: a notice is heard in the whole database.
create function holdfast.channel() returns text language sql stable as $$
  select 'jobs_' || 'holdfast.ready'::regclass::oid
$$;

-- A lane of a queue has a job at this rank that it may not have had before. Lane -1 means any lane.
create function holdfast.notify_ready(p_queue text, p_lane smallint, p_rank bigint) returns void language sql as $$
  select pg_notify(holdfast.channel(), 'ready ' || p_lane || ' ' || p_rank || ' ' || p_queue)
$$;

-- A job is due in this many milliseconds.
create function holdfast.notify_due(p_in_ms bigint) returns void language sql as $$
  select pg_notify(holdfast.channel(), 'due ' || greatest(p_in_ms, 0))
$$;
