-- Enqueues from SQL: for triggers, other languages and psql. Like any statement, it is part of its transaction.

-- Adds a job and returns its id, or the id of the job that holds the unique key, which is left as it is. Parameters have
-- names for callers: add_job('mail', '{}', run_at => now() + '1 hour').
--   job_type      the name of the job, as in hf.job({ name }).
--   payload       its input; the job's schema validates it when it runs. null for a job without input.
--   queue         one that a worker reads.
--   priority      0 to 9; a level is worth a minute here, regardless of the queue's aging.
--   run_at        null is now, and so is the past.
--   max_attempts  maximum number of attempts.
--   unique_key    held until the job is final; each job name has its own keys.
create function holdfast.add_job(
  job_type text, payload json, queue text default 'default', priority integer default 5,
  run_at timestamptz default null, max_attempts integer default 4, unique_key text default null
) returns uuid language plpgsql as $$
declare
  v_id constant uuid := holdfast.new_id();
  v_flush constant uuid := gen_random_uuid();
  v_payload constant text := coalesce(payload::text, 'null');
  v_head_start constant bigint := priority::bigint * 60000;
  v_key constant text := job_type || ' ' || unique_key;
  v_due bigint;
  v_facts json;
  v_answers json;
begin
  if job_type is null or job_type !~ '^[^[:space:]]{1,200}$' then
    raise exception 'job_type must be a name of 1 to 200 characters without white space, not %', quote_nullable(job_type)
      using errcode = 'invalid_parameter_value';
  elsif octet_length(v_payload) > 262144 then
    raise exception 'the payload of job % has % bytes, more than 262144', job_type, octet_length(v_payload)
      using errcode = 'program_limit_exceeded', hint = 'Store the large value elsewhere and pass a reference to it.';
  elsif queue is null or queue !~ '^[^[:space:]]{1,100}$' then
    raise exception 'queue must be a name of 1 to 100 characters without white space, not %', quote_nullable(queue)
      using errcode = 'invalid_parameter_value';
  elsif priority is null or priority not between 0 and 9 then
    raise exception 'priority must be a number from 0 to 9, not %', coalesce(priority::text, 'null')
      using errcode = 'invalid_parameter_value';
  elsif max_attempts is null or max_attempts not between 1 and 32767 then
    raise exception 'max_attempts must be a number from 1 to 32767, not %', coalesce(max_attempts::text, 'null')
      using errcode = 'invalid_parameter_value';
  elsif not isfinite(run_at) then
    raise exception 'run_at must be a time, not %', run_at using errcode = 'invalid_parameter_value';
  elsif char_length(unique_key) not between 1 and 512 then
    raise exception 'unique_key must be a text of 1 to 512 characters' using errcode = 'invalid_parameter_value';
  end if;

  v_due := (extract(epoch from run_at) * 1000)::bigint;
  v_facts := json_build_array(v_id, job_type, priority, v_head_start, max_attempts, 3, null);
  if v_key is null then
    perform holdfast.enqueue(v_flush, array[v_id], array[queue], array[job_type], array[priority::smallint],
      array[v_head_start], null, case when v_due is not null then array[v_due] end, v_facts::text, v_payload);
    return v_id;
  end if;
  v_answers := holdfast.enqueue_unique(v_flush, json_build_array(json_build_object('id', v_id, 'queue', queue, 'name',
    job_type, 'priority', priority, 'head_start', v_head_start, 'due_at', v_due, 'key', v_key, 'hold', 0, 'on_conflict',
    'ignore', 'facts', v_facts, 'payload', v_payload)));
  return coalesce((v_answers -> 0 ->> 0)::uuid, v_id);
end $$;
