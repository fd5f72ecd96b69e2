-- Jobs as a batch holds them. Only this file knows the format: [due_at, facts] for a job to which nothing has happened
-- yet, otherwise [due_at, facts, attempt, crashes, created_at, past, unique_key, unique_hold].

create function holdfast.pack_job(
  p_due_at bigint, p_facts text, p_attempt integer, p_crashes integer, p_created_at bigint, p_past jsonb, p_key text,
  p_hold bigint
) returns text language sql immutable as $$
  select concat('[', p_due_at, ',', p_facts, ',', p_attempt, ',', p_crashes, ',', p_created_at, ',',
    coalesce(p_past::text, 'null'), ',', coalesce(to_json(p_key)::text, 'null'), ',', coalesce(p_hold::text, 'null'), ']')
$$;

-- A table of one row, because then the planner inlines it, and only what is used is unpacked.
create function holdfast.unpack_job(p_job json) returns table (
  due_at bigint, facts text, attempt integer, crashes integer, created_at bigint, past jsonb, unique_key text,
  unique_hold bigint, name text, priority smallint, head_start bigint, max_crashes integer
) language sql immutable rows 1 as $$
  select (p_job ->> 0)::bigint, p_job ->> 1, coalesce((p_job ->> 2)::integer, 1), coalesce((p_job ->> 3)::integer, 0),
    coalesce(p_job ->> 4, p_job ->> 0)::bigint, (p_job ->> 5)::jsonb, p_job ->> 6, (p_job ->> 7)::bigint,
    p_job -> 1 ->> 1, (p_job -> 1 ->> 2)::smallint, (p_job -> 1 ->> 3)::bigint, (p_job -> 1 ->> 5)::integer
$$;

-- Facts with another id, priority and head start; null leaves the value unchanged.
create function holdfast.facts_with(p_facts text, p_id uuid, p_priority smallint, p_head_start bigint) returns text
language sql immutable as $$
  select json_agg(case
    when place = 1 and p_id is not null then to_json(p_id)
    when place = 3 and p_priority is not null then to_json(p_priority)
    when place = 4 and p_head_start is not null then to_json(p_head_start)
    else fact end order by place)::text
  from json_array_elements(p_facts::json) with ordinality as facts (fact, place)
$$;

-- The tags of a job, as a JSON list.
create function holdfast.tags_of(p_facts text) returns jsonb language sql immutable as $$
  select (p_facts::json -> 6 -> 'envelope' -> 'tags')::jsonb
$$;

-- The jobs of a batch by position.
create function holdfast.batch_jobs(p_token bigint, p_claimed_at bigint)
returns table (place integer, id uuid, job json, payload text) language sql stable rows 100 as $$
  select (job.place - 1)::integer, job.id, job.job, job.payload
  from holdfast.batch as batch
  cross join lateral rows from (
    unnest(batch.ids), json_array_elements(('[' || batch.jobs || ']')::json),
    unnest(string_to_array(batch.payloads, E'\x1e', ''))
  ) with ordinality as job (id, job, payload, place)
  where batch.token = p_token and batch.claimed_at = p_claimed_at
$$;

-- A mask of this size with these positions set.
create function holdfast.mask_of(p_size integer, p_places integer[]) returns varbit language sql immutable as $$
  select string_agg(case when place = any (p_places) then '1' else '0' end, '' order by place)::varbit
  from generate_series(0, p_size - 1) as place
$$;

-- Number of bits set.
create function holdfast.bits(p_mask varbit) returns integer language sql immutable as $$
  select length(replace(p_mask::text, '0', ''))
$$;

create function holdfast.delete_payloads(p_ids uuid[]) returns void language plpgsql as $$
begin
  delete from holdfast.payload as large where large.id = any (p_ids);
end $$;
