-- Drops the functions, types and views that are installed but not in the new set, or there with another header (see
-- schema.ts). All others are replaced in place, so that calls under way find them, grants on them remain, and views of yours
-- may depend on them. If another one of ours depends on one that has to go, all are dropped. Without CASCADE: if
-- something of yours depends on one of them, this fails and says what.
do $drop$
declare
  v_schema constant oid := (select relnamespace from pg_class where oid = 'holdfast.schema_info'::regclass);
  v_old constant jsonb := (select info.headers from holdfast.schema_info as info);
  v_new constant jsonb := current_setting('job_schema.headers');
  v_names text[] := array(select old.key from jsonb_each_text(v_old) as old where old.value is distinct from v_new ->> old.key);
  v_all boolean := false;
  v_one record;
  v_dropped boolean;
  v_error text;
  v_detail text;
begin
  -- In rounds, because they depend on each other.
  loop
    v_dropped := false;
    v_error := null;
    for v_one in
      select 'view' as kind, view.oid::regclass::text as name from pg_class as view
      where view.relnamespace = v_schema and view.relkind = 'v' and view.relname = any (v_names)
      union all
      select 'function', proc.oid::regprocedure::text from pg_proc as proc
      where proc.pronamespace = v_schema and proc.proname = any (v_names)
      union all
      select 'type', type.oid::regtype::text from pg_type as type join pg_class as class on class.oid = type.typrelid
      where type.typnamespace = v_schema and class.relkind = 'c' and type.typname = any (v_names)
    loop
      begin
        execute format('drop %s %s', v_one.kind, v_one.name);
        v_dropped := true;
      exception when dependent_objects_still_exist then
        get stacked diagnostics v_error = message_text, v_detail = pg_exception_detail;
      end;
    end loop;
    exit when v_error is null;
    continue when v_dropped;
    if v_all then raise exception '%: %', v_error, v_detail using errcode = 'dependent_objects_still_exist'; end if;
    v_all := true;
    v_names := array(select jsonb_object_keys(v_old));
  end loop;
end $drop$;
