-- Partitions by day of batch and history: forgetting a day is dropping its partition. What no partition takes, because the
-- upkeep did not run for days, goes to the default partition.

-- Makes the partitions of today and the next p_days days. A day of which the default partition has rows already gets none.
-- Everybody would have to wait behind a lock that waits for a long transaction, a backup for one. So each lock is given up
-- soon, and tried for again with the next call.
create function holdfast.make_partitions(p_days integer) returns void language plpgsql as $$
declare
  v_day_ms constant bigint := 86400000;
  v_today constant bigint := holdfast.now_ms() / v_day_ms;
  v_table record;
  v_name text;
  v_from bigint;
  v_taken boolean;
begin
  for v_table in
    select parent.relname, space.nspname, parent.oid::regclass as parent,
      case parent.oid when 'holdfast.batch'::regclass then 'claimed_at' else 'finished_at' end as key
    from pg_class as parent join pg_namespace as space on space.oid = parent.relnamespace
    where parent.oid in ('holdfast.batch'::regclass, 'holdfast.history'::regclass)
  loop
    for v_ahead in 0 .. p_days loop
      v_from := (v_today + v_ahead) * v_day_ms;
      v_name := v_table.relname || '_' || to_char(to_timestamp(v_from / 1000) at time zone 'UTC', 'YYYYMMDD');
      continue when to_regclass(format('%I.%I', v_table.nspname, v_name)) is not null;
      execute format('select exists (select from %I.%I where %I >= %s and %I < %s)', v_table.nspname,
        v_table.relname || '_rest', v_table.key, v_from, v_table.key, v_from + v_day_ms) into v_taken;
      continue when v_taken;
      begin
        set local lock_timeout = '100ms';
        execute format('create table %I.%I (like %s including defaults including storage)
          with (autovacuum_vacuum_insert_threshold = -1)', v_table.nspname, v_name, v_table.parent);
        execute format('alter table %s attach partition %I.%I for values from (%s) to (%s)', v_table.parent,
          v_table.nspname, v_name, v_from, v_from + v_day_ms);
      exception when lock_not_available then
        return;
      end;
    end loop;
  end loop;
end $$;

-- Drops the partitions of days that were over at a time; returns how many completed jobs went with them. A partition that
-- something still refers to is left for a later call. Each is first locked against writers, so that what is found in it
-- stays true, and its parent last and for the shortest time, because that stops everybody.
create function holdfast.drop_partitions(p_before bigint) returns bigint language plpgsql as $$
declare
  v_part record;
  v_used boolean;
  v_tokens int8range;
  v_dropped bigint := 0;
  v_size bigint;
begin
  for v_part in
    select part.oid::regclass as name, inherits.inhparent::regclass as parent,
      inherits.inhparent = 'holdfast.history'::regclass as is_history,
      (extract(epoch from to_date(right(part.relname, 8), 'YYYYMMDD') + 1) * 1000)::bigint as ends_at
    from pg_inherits as inherits join pg_class as part on part.oid = inherits.inhrelid
    where inherits.inhparent in ('holdfast.history'::regclass, 'holdfast.batch'::regclass)
      and part.relname ~ '_[0-9]{8}$'
    -- History first: it refers to the batches.
    order by is_history desc, ends_at
  loop
    continue when v_part.ends_at > p_before;
    begin
      set local lock_timeout = '100ms';
      v_size := 0;
      execute format('lock table %s in share row exclusive mode', v_part.name);
      if v_part.is_history then
        -- Jobs with large payloads are pruned one by one, together with those.
        execute format('select exists (select from %s where apart)', v_part.name) into v_used;
        continue when v_used;
        execute format('with counted as (
            insert into holdfast.count_change (queue, completed) select queue, - sum(size) from %s group by queue
            returning completed
          ) select coalesce(- sum(completed), 0) from counted', v_part.name) into v_size;
      else
        -- By token, because that is what has an index.
        execute format('select int8range(min(token), max(token), ''[]'') from %s having count(*) > 0', v_part.name)
        into v_tokens;
        continue when exists (
          select from holdfast.lease as lease where lease.token between lower(v_tokens) and upper(v_tokens) - 1
        ) or exists (
          select from holdfast.history as history where history.token between lower(v_tokens) and upper(v_tokens) - 1
        );
      end if;
      execute format('lock table only %s in access exclusive mode', v_part.parent);
      execute format('drop table %s', v_part.name);
      v_dropped := v_dropped + v_size;
    exception when lock_not_available then
      exit;
    end;
  end loop;
  -- The history of a batch in the default partition may have gone with a partition.
  delete from holdfast.batch_rest as batch
  where batch.claimed_at < p_before
    and not exists (select from holdfast.history as history where history.token = batch.token)
    and not exists (select from holdfast.lease as lease where lease.token = batch.token);
  return v_dropped;
end $$;
