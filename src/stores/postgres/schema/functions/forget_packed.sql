-- Deletes completed jobs of one batch from history, and the batch with the last of them. Returns how many it deleted.
create function holdfast.forget_packed(p_token bigint, p_places integer[]) returns integer language plpgsql as $$
declare
  v_batch holdfast.batch;
  v_pack record;
  v_mask varbit;
  v_gone varbit;
  v_left integer[];
  v_forgotten integer := 0;
begin
  select * into v_batch from holdfast.batch as batch where batch.token = p_token;
  if not found then return 0; end if;
  for v_pack in
    select history.tableoid, history.ctid as place, history.* from holdfast.history as history
    where history.token = p_token for update
  loop
    v_mask := coalesce(v_pack.mask, repeat('1', v_batch.size)::varbit);
    v_gone := v_mask & holdfast.mask_of(v_batch.size, p_places);
    continue when position(B'1' in v_gone) = 0;
    -- The remaining entries of the lists.
    v_left := array(
      select set.number from (
        select place, row_number() over (order by place)::integer as number
        from generate_series(0, v_batch.size - 1) as place where get_bit(v_mask, place) = 1
      ) as set
      where get_bit(v_gone, set.place) = 0 order by set.number
    );
    if v_left = '{}' then
      delete from holdfast.history as history where history.tableoid = v_pack.tableoid and history.ctid = v_pack.place;
    else
      update holdfast.history as history
      set mask = v_mask & ~ v_gone, size = cardinality(v_left),
        run_ms = array(select v_pack.run_ms[number] from unnest(v_left) with ordinality as kept (number, place) order by kept.place),
        results = case when v_pack.results is not null then
          array(select v_pack.results[number] from unnest(v_left) with ordinality as kept (number, place) order by kept.place) end,
        dropped = case when v_pack.dropped is not null then
          array(select v_pack.dropped[number] from unnest(v_left) with ordinality as kept (number, place) order by kept.place) end
      where history.tableoid = v_pack.tableoid and history.ctid = v_pack.place;
    end if;
    if not found then raise exception 'history of lease % is gone, although it is locked', p_token; end if;
    if v_pack.has_large then
      perform holdfast.delete_payloads(array(
        select job.id from unnest(v_batch.ids) with ordinality as job (id, place)
        where get_bit(v_gone, (job.place - 1)::integer) = 1
      ));
    end if;
    insert into holdfast.count_change (queue, completed) values (v_pack.queue, - holdfast.bits(v_gone));
    v_forgotten := v_forgotten + holdfast.bits(v_gone);
  end loop;
  if v_forgotten > 0 then perform holdfast.delete_batches(array[p_token]); end if;
  return v_forgotten;
end $$;

-- Deletes those of these batches that neither history nor a lease refers to. Waits for settles of their leases: a
-- running settle still sees the history that was deleted here, and leaves the batch to us.
create function holdfast.delete_batches(p_tokens bigint[]) returns void language plpgsql as $$
begin
  perform from holdfast.lease as lease where lease.token = any (p_tokens) order by lease.token for update;
  delete from holdfast.batch as batch
  where batch.token = any (p_tokens)
    and not exists (select from holdfast.history as history where history.token = batch.token)
    and not exists (select from holdfast.lease as lease where lease.token = batch.token);
end $$;
