-- Drops the functions, types and views that an earlier run of this script installed and that are not in the new set, or
-- have another header there (see schema.ts). The others are replaced in place: running calls find them, their grants
-- remain, and your views may depend on them. If another one of ours depends on one that must be dropped, all are
-- dropped. There is no CASCADE: if one of your objects depends on one of them, this fails and names it.
--
-- Each object is known by its kind and its exact name or signature, so your own functions and views in the same schema
-- are left alone. If one of them has a name that the new set needs, this fails too.
do $drop$
declare
  v_old constant jsonb := (select info.headers from holdfast.schema_info as info);
  v_new constant jsonb := current_setting('job_schema.headers');
  v_left text[] := array(select old.key from jsonb_each_text(v_old) as old where old.value is distinct from v_new ->> old.key);
  v_dropped text[] := '{}';
  v_all boolean := false;
  v_one text;
  v_progress boolean;
  v_taken boolean;
  v_error text;
  v_detail text;
begin
  -- In rounds, because they depend on each other.
  loop
    v_progress := false;
    v_error := null;
    foreach v_one in array v_left loop
      begin
        execute regexp_replace(v_one, '^(\w+) ', 'drop \1 if exists ');
        v_dropped := v_dropped || v_one;
        v_progress := true;
      exception when dependent_objects_still_exist then
        get stacked diagnostics v_error = message_text, v_detail = pg_exception_detail;
      end;
    end loop;
    exit when v_error is null;
    if not v_progress then
      if v_all then raise exception '%: %', v_error, v_detail using errcode = 'dependent_objects_still_exist'; end if;
      v_all := true;
      v_left := array(select jsonb_object_keys(v_old));
    end if;
    v_left := array(select key from unnest(v_left) as key where key <> all (v_dropped));
  end loop;

  for v_one in
    select new.key from jsonb_object_keys(v_new) as new (key) where not v_old ? new.key or new.key = any (v_dropped)
  loop
    begin
      v_taken := case split_part(v_one, ' ', 1)
        when 'function' then to_regprocedure(substr(v_one, 10)) is not null
        when 'view' then to_regclass(substr(v_one, 6)) is not null
        else to_regtype(substr(v_one, 6)) is not null
      end;
    -- Before PostgreSQL 16: a type in the signature does not exist yet, so the function does not either.
    exception when undefined_object then v_taken := false;
    end;
    if v_taken then
      raise exception '% already exists, and this script did not create it', v_one
        using errcode = 'duplicate_object', hint = 'Use a separate schema for the job tables, or another prefix.';
    end if;
  end loop;
end $drop$;
