-- A waiting job that moves between tables, see the table ready.
create type holdfast.waiting as (
  id uuid, queue text, name text, priority smallint, head_start bigint, due_at bigint, created_at bigint,
  attempt integer, crashes integer, unique_hold bigint, unique_key text, past jsonb, facts text, payload text
);
