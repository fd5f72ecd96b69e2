-- Becomes or stays the leader.
create function holdfast.lead(p_candidate uuid, p_ttl bigint) returns boolean language plpgsql as $$
declare
  v_now constant bigint := holdfast.now_ms();
begin
  insert into holdfast.leader as leader (candidate, until) values (p_candidate, v_now + p_ttl)
  on conflict (one) do update set candidate = excluded.candidate, until = excluded.until
  where leader.candidate = excluded.candidate or leader.until <= v_now;
  return found;
end $$;
