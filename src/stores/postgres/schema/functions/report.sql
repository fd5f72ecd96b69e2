-- Keeps progress and log lines of running jobs, at most p_lines lines each: [[token, position, progress, lines], ...]. Ignores
-- reports for positions that are not open under this worker's token.
create function holdfast.report(p_worker uuid, p_reports json, p_lines integer) returns void language plpgsql as $$
declare
  v_report record;
  v_lease holdfast.lease;
  v_reported jsonb;
  v_log jsonb;
begin
  for v_report in
    select (report ->> 0)::bigint as token, (report ->> 1)::integer as place, (report -> 2)::jsonb as progress,
      (report -> 3)::jsonb as lines
    from json_array_elements(p_reports) with ordinality as list (report, number)
    order by (report ->> 0)::bigint, number
  loop
    select * into v_lease from holdfast.lease as lease
    where lease.token = v_report.token and lease.worker = p_worker for update;
    continue when not found or v_report.place not between 0 and length(v_lease.done) - 1;
    continue when get_bit(v_lease.done, v_report.place) = 1;
    v_reported := coalesce(v_lease.reported -> v_report.place::text, (
      select unpacked.past from holdfast.batch_jobs(v_lease.token, v_lease.claimed_at) as job
      cross join lateral holdfast.unpack_job(job.job) as unpacked where job.place = v_report.place
    ), '{}');
    v_log := coalesce(v_reported -> 'log', '[]') || v_report.lines;
    if jsonb_array_length(v_log) > p_lines then
      select jsonb_agg(line order by number) into v_log
      from jsonb_array_elements(v_log) with ordinality as lines (line, number)
      where number > jsonb_array_length(v_log) - p_lines;
    end if;
    v_reported := jsonb_build_object('log', v_log, 'progress',
      case when jsonb_typeof(v_report.progress) = 'object' then v_report.progress else v_reported -> 'progress' end);
    update holdfast.lease as lease
    set reported = coalesce(lease.reported, '{}') || jsonb_build_object(v_report.place::text, v_reported)
    where lease.token = v_report.token;
    if not found then raise exception 'lease % is gone, although it is locked', v_report.token; end if;
  end loop;
end $$;
