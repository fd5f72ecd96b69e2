/** The scenarios are only worth what their judge notices: a store that is broken on purpose is not let pass. */
import { describe, expect, test } from 'vitest'
import { withClient } from '../../support/servers/client.ts'
import { sharedPostgres } from '../../support/servers/database.ts'
import { PATIENT, setStage } from './support/stage.ts'

/** Name → what it does to the rows behind the store's back, and what tells of it. */
const BROKEN = [
  {
    name: 'loses a job that was acked',
    sql: `create function lose() returns trigger language plpgsql as $$ begin return null; end $$;
          create trigger lose before insert on holdfast.ready
          for each row when (new.attempt = 0 and random() < 0.1) execute function lose()`,
    told: /^S1: every acked enqueue/m,
  },
  {
    name: 'leaves a job where it was when it is claimed',
    sql: `create function keep() returns trigger language plpgsql as $$
          begin
            if old.attempt = 0 and random() < 0.1 then insert into holdfast.ready select (old).*; end if;
            return null;
          end $$;
          create trigger keep after delete on holdfast.ready for each row execute function keep()`,
    told: /^(S2|S3|S11): |The audit makes no sense/m,
  },
  {
    name: 'runs a job again that is completed',
    sql: `create function undo() returns trigger language plpgsql as $$
          begin
            perform holdfast.put_waiting(new.id, new.queue, holdfast.now_ms(), holdfast.now_ms(), 0, 0, null, new.job -> 1);
            delete from holdfast.history where id = new.id;
            return null;
          end $$;
          create trigger undo after insert on holdfast.history
          for each row when (not new.cancelled and random() < 0.1) execute function undo()`,
    told: /^(S4|S5|S6|S11): /m,
  },
]

describe.concurrent('a store that', PATIENT, () => {
  test.for(BROKEN)('$name is found out', async ({ sql, told }, context) => {
    const { fleet, database } = await setStage(context, { serverUrl: sharedPostgres(18) })
    await withClient(database.url, (client) => client.query(sql))
    await fleet.progress(60)
    await expect(fleet.judge()).rejects.toThrow(told)
  })
})
