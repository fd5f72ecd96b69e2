/**
 * The store's own moves, in the checker's format. Triggers on its tables record every insert, update and delete in the
 * same transaction as the row, so the audit has exactly what was committed, even across a crash of the server. Each
 * transaction is stamped when it commits, so a transaction that waited for its locks has a later stamp.
 */
import { withClient } from '../../../support/servers/client.ts'
import type { TimedEvent } from '../../../support/recorded-store.ts'
import { movesOf, type Entry, type SettlementOf } from './moves.ts'

const TABLES = [
  'ready',
  'scheduled',
  'lease',
  'batch',
  'dead',
  'history',
  'ended',
  'unique_key',
  'worker',
  'queue',
] as const

const INSTALL = `
  create schema audit;
  create table audit.entry (
    seq bigint generated always as identity primary key,
    tx bigint not null default txid_current(),
    statement text,
    relation text not null,
    op text not null,
    old jsonb,
    new jsonb
  );
  create table audit.commit (
    tx bigint primary key default txid_current(),
    at double precision not null default extract(epoch from clock_timestamp()) * 1000
  );
  create function audit.note() returns trigger language plpgsql as $$
  begin
    insert into audit.entry (statement, relation, op, old, new)
    values (
      -- What the client sent: the first of our names in it.
      substring(current_query() from '"holdfast"\\."(\\w+)"'),
      tg_argv[0],
      tg_op,
      case when tg_op <> 'INSERT' then to_jsonb(old) end,
      case when tg_op <> 'DELETE' then to_jsonb(new) end
    );
    return null;
  end $$;
  create function audit.stamp() returns trigger language plpgsql as $$
  begin
    insert into audit.commit default values on conflict do nothing;
    return null;
  end $$;
  create constraint trigger stamp after insert on audit.entry
  deferrable initially deferred for each row execute function audit.stamp();
  ${TABLES.map(
    (table) =>
      `create trigger audit after insert or update or delete on holdfast.${table}
       for each row execute function audit.note('${table}');`,
  ).join('\n')}
`

/** Call it after the store was opened once and before anybody uses it. */
export async function installAudit(url: string): Promise<void> {
  await withClient(url, (client) => client.query(INSTALL))
}

/** Everything that happened since then: moves, leases and settings in the order of their transactions. */
export async function readAudit(url: string, settlementOf: SettlementOf): Promise<TimedEvent[]> {
  const { rows } = await withClient(
    url,
    (client) =>
      client.query<Entry>(
        `select seq::int, tx::int, at, statement, relation, op, old, new
         from audit.entry join audit.commit using (tx) order by at, tx, seq`,
      ),
    30_000,
  )
  return movesOf(rows, settlementOf)
}
