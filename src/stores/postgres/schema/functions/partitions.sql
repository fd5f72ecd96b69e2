-- Daily partitions of batch and history: dropping a partition deletes a whole day. A row without a partition, because
-- maintenance did not run for days, goes to the default partition.
--
-- DDL on a partitioned table needs locks that stop claims and settles, and PostgreSQL keeps them until the transaction
-- ends. So each call makes or drops a single partition, reads what it needs before it takes such a lock, and gives up
-- after 100 ms if a long transaction, such as a backup, is in the way. The next call tries again.

-- Makes up to p_most of the partitions for today and the next p_days days; returns how many it made. A day that already
-- has rows in the default partition gets none. If the default partition has other rows, ATTACH reads all of them while
-- settles wait (about a second per gigabyte). That happens only if maintenance failed for more than p_days days.
create function holdfast.make_partitions(p_days integer, p_most integer) returns integer language plpgsql as $$
declare
  v_day_ms constant bigint := 86400000;
  v_today constant bigint := holdfast.now_ms() / v_day_ms;
  v_made integer := 0;
  v_day record;
  v_taken boolean;
begin
  for v_day in
    select parent.oid::regclass as parent, space.nspname as space, parent.relname || '_rest' as rest,
      parent.relname || '_' || to_char(to_timestamp(start.at / 1000) at time zone 'UTC', 'YYYYMMDD') as name,
      case parent.oid when 'holdfast.batch'::regclass then 'claimed_at' else 'finished_at' end as key,
      start.at as from_ms, start.at + v_day_ms as to_ms
    from pg_class as parent join pg_namespace as space on space.oid = parent.relnamespace
    cross join lateral (select (v_today + ahead) * v_day_ms as at from generate_series(0, p_days) as ahead) as start
    where parent.oid in ('holdfast.batch'::regclass, 'holdfast.history'::regclass)
    order by start.at, parent.relname
  loop
    exit when v_made >= p_most;
    continue when to_regclass(format('%I.%I', v_day.space, v_day.name)) is not null;
    execute format('select exists (select from %I.%I where %I >= %s and %I < %s)', v_day.space, v_day.rest, v_day.key,
      v_day.from_ms, v_day.key, v_day.to_ms) into v_taken;
    continue when v_taken;
    begin
      set local lock_timeout = '100ms';
      execute format('create table %I.%I (like %s including defaults including storage)
        with (autovacuum_vacuum_insert_threshold = -1)', v_day.space, v_day.name, v_day.parent);
      execute format('alter table %s attach partition %I.%I for values from (%s) to (%s)', v_day.parent, v_day.space,
        v_day.name, v_day.from_ms, v_day.to_ms);
      v_made := v_made + 1;
    exception
      when lock_not_available then return v_made;
      -- A row of that day was inserted into the default partition after the check.
      when check_violation then null;
      -- Another process was faster.
      when duplicate_table then null;
    end;
  end loop;
  return v_made;
end $$;

-- Names of the partitions whose day was over at p_before: first those of history, which refers to the batches.
create function holdfast.old_partitions(p_before bigint) returns setof text language sql stable as $$
  select part.oid::regclass::text
  from pg_inherits as inherits join pg_class as part on part.oid = inherits.inhrelid
  where inherits.inhparent in ('holdfast.history'::regclass, 'holdfast.batch'::regclass)
    and part.relname ~ '_[0-9]{8}$'
    and extract(epoch from to_date(right(part.relname, 8), 'YYYYMMDD') + 1) * 1000 <= p_before
  order by inherits.inhparent = 'holdfast.history'::regclass desc, right(part.relname, 8)
$$;

-- Drops one of these partitions, unless something refers to it. Returns how many completed jobs it contained, or null
-- if it could not get a lock. First it locks the partition against writers, so that what it reads stays valid.
create function holdfast.drop_partition(p_name text) returns bigint language plpgsql as $$
declare
  v_part constant regclass := to_regclass(p_name);
  v_parent constant regclass := (select inhparent from pg_inherits where inhrelid = v_part);
  v_used boolean;
  v_low bigint;
  v_high bigint;
  v_size bigint := 0;
begin
  if v_parent is null then return 0; end if;
  set local lock_timeout = '100ms';
  execute format('lock table %s in share row exclusive mode', v_part);
  if v_parent = 'holdfast.history'::regclass then
    -- Jobs with large payloads are pruned one by one, together with those.
    execute format('select exists (select from %s where has_large)', v_part) into v_used;
    if v_used then return 0; end if;
    execute format('with counted as (
        insert into holdfast.count_change (queue, completed) select queue, - sum(size) from %s group by queue
        returning completed
      ) select coalesce(- sum(completed), 0) from counted', v_part) into v_size;
  else
    -- By token, because both ends and every range of tokens are found by an index.
    execute format('select (select token from %1$s order by token limit 1),
      (select token from %1$s order by token desc limit 1)', v_part) into v_low, v_high;
    if exists (select from holdfast.lease as lease where lease.token between v_low and v_high)
      or exists (select from holdfast.history as history where history.token between v_low and v_high) then
      return 0;
    end if;
  end if;
  execute format('lock table only %s in access exclusive mode', v_parent);
  execute format('drop table %s', v_part);
  return v_size;
exception
  when lock_not_available then return null;
  -- Another process dropped it while this one waited.
  when undefined_table then return 0;
end $$;

-- Deletes batches from the default partition whose history was dropped with a partition: checks p_limit of them, in
-- order of token, after p_after. Returns the token to continue after, or null at the end of those older than p_before.
create function holdfast.prune_batch_rest(p_before bigint, p_after bigint, p_limit integer) returns bigint language plpgsql
set enable_seqscan = off set enable_bitmapscan = off as $$
declare
  v_seen record;
begin
  select array_agg(first.token) filter (where first.claimed_at < p_before) as tokens, count(*) as looked,
    max(first.token) as last
  into v_seen
  from (
    select batch.token, batch.claimed_at from holdfast.batch_rest as batch
    where batch.token > p_after order by batch.token limit p_limit
  ) as first;
  perform holdfast.delete_batches(v_seen.tokens);
  return case when v_seen.looked >= p_limit and cardinality(v_seen.tokens) > 0 then v_seen.last end;
end $$;
