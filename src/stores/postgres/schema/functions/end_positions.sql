-- The only way out of running: every settle, release and rescue ends positions here, after it has written their
-- outcome. p_kept says that this settle wrote history, which refers to the batch. The last position deletes the lease.
-- It also deletes the batch, unless a row of history refers to it: rows of earlier settles may have been pruned since.
create function holdfast.end_positions(p_lease holdfast.lease, p_mask varbit, p_kept boolean) returns void
language plpgsql as $$
declare
  v_done constant varbit := p_lease.done | p_mask;
  v_hit integer;
begin
  if position(B'1' in p_lease.done & p_mask) > 0 then
    raise exception 'a position of lease % would be settled twice', p_lease.token;
  end if;
  if position(B'0' in v_done) > 0 then
    update holdfast.lease as lease set done = v_done, kept = lease.kept or p_kept where lease.token = p_lease.token;
    get diagnostics v_hit = row_count;
  else
    delete from holdfast.lease as lease where lease.token = p_lease.token;
    get diagnostics v_hit = row_count;
    if not p_kept then
      delete from holdfast.batch as batch
      where batch.token = p_lease.token and batch.claimed_at = p_lease.claimed_at and not (
        p_lease.kept and exists (select from holdfast.history as history where history.token = p_lease.token)
      );
      if not found and not p_lease.kept then raise exception 'lease % has no batch', p_lease.token; end if;
    end if;
  end if;
  if v_hit <> 1 then raise exception 'lease % is gone, although it is locked', p_lease.token; end if;
end $$;
