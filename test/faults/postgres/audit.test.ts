/** Proves that the judge of the fault scenarios notices bugs: it rejects a store that is broken on purpose. */
import { describe, expect, test } from 'vitest'
import { withClient } from '../../support/servers/client.ts'
import { sharedPostgres } from '../../support/servers/database.ts'
import { PATIENT } from '../support/fleet.ts'
import { setStage } from './support/stage.ts'

/** How some rows are changed on their way into a table, and the rule that reports it. */
const BROKEN = [
  { name: 'loses jobs', table: 'ready', when: 'new.attempt = 0', change: 'return null;', rule: 'S1' },
  {
    name: 'forgets attempts',
    table: 'scheduled',
    when: 'new.attempt > 0',
    change: 'new.attempt := 0; return new;',
    rule: 'S5',
  },
  {
    name: 'changes payloads',
    table: 'ready',
    when: 'true',
    change: `new.payload := new.payload::jsonb || '{"changed": true}'; return new;`,
    rule: 'S12',
  },
]

describe.concurrent('a store that', PATIENT, () => {
  test.for(BROKEN)('$name is found out', async ({ table, when, change, rule }, context) => {
    const { fleet, database } = await setStage(context, { serverUrl: sharedPostgres(18) })
    const sql = `create function harm() returns trigger language plpgsql as $$ begin ${change} end $$;
      create trigger harm before insert on holdfast.${table}
      for each row when (random() < 0.2 and ${when}) execute function harm()`
    await withClient(database.url, (client) => client.query(sql))
    await fleet.progress(60)
    await expect(fleet.judge()).rejects.toThrow(new RegExp(`^${rule}: `, 'm'))
  })
})
