-- A UUIDv7 (RFC 9562) whose twelve bits behind the milliseconds are their fraction: jobs of equal rank go by id, so those
-- that one transaction adds in one millisecond keep their order.
create function holdfast.new_id() returns uuid language sql volatile parallel safe as $$
  select (
    lpad(to_hex(micros / 1000), 12, '0') || '7' || lpad(to_hex(micros % 1000 * 4096 / 1000), 3, '0')
    -- The variant and 62 random bits.
    || right(replace(gen_random_uuid()::text, '-', ''), 16)
  )::uuid
  from (select (extract(epoch from clock_timestamp()) * 1000000)::bigint as micros) as now
$$;
