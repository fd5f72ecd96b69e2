-- The store's only clock. A volatile function is evaluated once per row, so queries use (select holdfast.now_ms()).
create function holdfast.now_ms() returns bigint language sql volatile parallel safe as $$
  select (extract(epoch from clock_timestamp()) * 1000)::bigint
$$;
