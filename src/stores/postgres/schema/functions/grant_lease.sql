-- Moves locked ready jobs under a new lease: the only way out of ready by a claim. Lists are in order of position. Returns
-- token, time of the claim, jobs and payloads, separated by U+001D; nothing if there are no jobs.
create function holdfast.grant_lease(
  p_worker uuid, p_queue text, p_now bigint, p_places tid[], p_ids uuid[], p_jobs text, p_payloads text, p_keyed boolean,
  p_has_large boolean, p_first_name text, p_last_name text
) returns text language plpgsql as $$
declare
  v_size constant integer := cardinality(p_ids);
  v_keys text[];
  v_holders uuid[];
  v_sorted uuid[];
  v_low uuid;
  v_high uuid;
  v_strays varbit;
  v_token bigint;
  v_deleted integer;
begin
  if v_size is null then return ''; end if;
  if p_keyed then
    -- Exact pairs: a job that was released may be claimed together with the one that took its key meanwhile.
    select array_agg(ready.unique_key), array_agg(ready.id) into v_keys, v_holders
    from holdfast.ready as ready where ready.ctid = any (p_places) and ready.unique_hold = -1;
    delete from holdfast.unique_key as held
    where held.key = any (v_keys)
      and (held.key, held.job) in (select freed.key, freed.job from unnest(v_keys, v_holders) as freed (key, job));
  end if;
  delete from holdfast.ready as ready where ready.ctid = any (p_places);
  get diagnostics v_deleted = row_count;
  if v_deleted <> v_size then raise exception 'claimed % jobs, but deleted % from ready', v_size, v_deleted; end if;

  if v_size = 1 then
    v_low := p_ids[1];
    v_high := p_ids[1];
  else
    v_sorted := array(select id from unnest(p_ids) as id order by id);
    v_low := v_sorted[1];
    v_high := v_sorted[v_size];
    if holdfast.id_ms(v_high) - holdfast.id_ms(v_low) > 60000 then
      -- Bounds of a minute around the middle id, so that the few jobs that waited long do not widen them.
      v_low := holdfast.id_at(holdfast.id_ms(v_sorted[(v_size + 1) / 2]) - 60000);
      v_high := holdfast.id_at(holdfast.id_ms(v_sorted[(v_size + 1) / 2]) + 60001);
      select string_agg(case when job.id between v_low and v_high then '0' else '1' end, '' order by job.place)::varbit
      into v_strays from unnest(p_ids) with ordinality as job (id, place);
    end if;
  end if;

  insert into holdfast.lease as lease (claimed_at, worker, keyed, has_large, queue, done, strays)
  values (p_now, p_worker, p_keyed, p_has_large, p_queue, repeat('0', v_size)::varbit, v_strays)
  returning lease.token into v_token;
  insert into holdfast.batch
    (token, claimed_at, size, has_large, wide, low, high, queue, first_name, last_name, strays, ids, jobs, payloads)
  values (v_token, p_now, v_size, p_has_large, v_high > holdfast.block_end(v_low), v_low, v_high, p_queue, p_first_name,
    p_last_name, v_strays, p_ids, p_jobs, p_payloads);
  insert into holdfast.count_change (queue, ready) values (p_queue, - v_size);
  return concat_ws(E'\x1d', v_token, p_now, p_jobs, p_payloads);
end $$;
