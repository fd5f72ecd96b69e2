-- Ids are UUIDv7: the first 48 bits are milliseconds. Only speed depends on that.
create function holdfast.id_ms(p_id uuid) returns bigint language sql immutable parallel safe as $$
  select ('x' || lpad(replace(left(p_id::text, 13), '-', ''), 16, '0'))::bit(64)::bigint
$$;

-- The smallest id of a millisecond, within the range of an id.
create function holdfast.id_at(p_ms bigint) returns uuid language sql immutable parallel safe as $$
  select (lpad(to_hex(least(greatest(p_ms, 0), 281474976710655)), 12, '0') || repeat('0', 20))::uuid
$$;

-- How far the ids of one batch may lie apart, see holdfast.grant_lease: a batch that contains an id has its high bound
-- below the id plus this, and its low bound above the id minus this.
create function holdfast.batch_span_ms() returns bigint language sql immutable parallel safe as $$
  select 120001::bigint
$$;

-- The first and the last id of a block: ids that share their first 9 hex digits, which are those of about 4 seconds.
create function holdfast.block_start(p_id uuid) returns uuid language sql immutable parallel safe as $$
  select (left(p_id::text, 10) || '000-0000-0000-000000000000')::uuid
$$;

create function holdfast.block_end(p_id uuid) returns uuid language sql immutable parallel safe as $$
  select (left(p_id::text, 10) || 'fff-ffff-ffff-ffffffffffff')::uuid
$$;
