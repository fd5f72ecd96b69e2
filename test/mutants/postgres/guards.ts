/** What the functions refuse: states of the tables that cannot be, and calls that mean nothing. */
import assert from 'node:assert/strict'
import {
  COMPLETED,
  DEAD,
  Harness,
  LEASE_MS,
  MINUTE_MS,
  newFlushId,
  newJobId,
  newJobs,
  QUEUE,
  SECOND_MS,
  uniqueWhile,
} from '../../../src/stores/conformance/support.ts'
import { Held, type Crossings, type CrossingSite } from './held.ts'

export const UNKNOWN_KIND = 'a settlement of an unknown kind is refused by the database'
export const NO_KIND = 'a settlement without a kind is refused by the database'
export const CRASH_KINDS = 'a rescue that leaves out a job is refused by the database'
export const UNKNOWN_ACTION = 'an unknown bulk action is refused by the database'
export const BATCH_MISSING = 'a settle whose batch is missing is refused'
export const BATCH_MISSING_RESCUE = 'a rescue reports a lease without a batch, after everything else'

/** Each write that is suppressed, by the title of its test. */
export const DEAD_KEPT = 'a replay notices that the dead letter was not deleted'
export const CANCEL_UNWRITTEN = 'a cancel notices that the lease was not written'
export const REPORT_UNWRITTEN = 'a report notices that the lease was not written'
export const TICK_UNWRITTEN = 'a tick notices that the schedule was not written'
export const ANSWERS_UNWRITTEN = 'an enqueue notices that its answers were not written'
export const KEY_UNWRITTEN = 'a replace notices that the key was not written'
export const HISTORY_KEPT = 'a discard notices that the history was not deleted'
export const HISTORY_UNWRITTEN = 'a discard notices that the history was not written'

const SETTLE = `select holdfast.settle($1, array[$2::bigint], $3, $4, '{0,0}', '{1,1}', '{{},{}}', null, null, $5)`

/** Each in a transaction that is undone. */
async function refuses(
  site: CrossingSite,
  message: RegExp,
  ...steps: readonly (readonly [text: string, values: readonly unknown[]])[]
): Promise<void> {
  await using session = new Held(site)
  await session.begin('select', [])
  for (const [text, values] of steps.slice(0, -1)) await session.run(text, values)
  const last = steps.at(-1)
  assert.ok(last !== undefined)
  await assert.rejects(session.run(...last), message)
}

/** The server does as if it wrote, but leaves the row as it is. */
function suppress(table: string, event: 'update' | 'delete'): readonly [string, readonly unknown[]][] {
  return [
    [
      `create function holdfast.suppress() returns trigger language plpgsql as $$ begin return null; end $$`,
      [],
    ],
    [
      `create trigger suppress before ${event} on holdfast.${table} for each row execute function holdfast.suppress()`,
      [],
    ],
  ]
}

const GONE = /is gone/

async function enqueueJson(harness: Harness, onConflict: string): Promise<string> {
  const { unique } = await harness.put({ unique: uniqueWhile('unfinished') })
  const id = newJobId()
  const facts = [id, 'mail.send', 0, 0, 4, 3, null]
  const job = {
    id,
    queue: QUEUE,
    name: 'mail.send',
    priority: 0,
    head_start: 0,
    hold: 0,
    facts,
    payload: '{}',
  }
  return JSON.stringify([{ ...job, key: unique?.key, on_conflict: onConflict }])
}

export const GUARDS: Crossings = {
  async [UNKNOWN_KIND](site) {
    const { worker, token } = await new Harness(site.under).running()
    await refuses(site, /unknown kind of settlement: complete/, [
      SETTLE,
      [worker, token, '{1}', '{complete}', false],
    ])
  },
  async [NO_KIND](site) {
    const harness = new Harness(site.under)
    await harness.enqueue(newJobs(2))
    const { worker, token } = (await harness.claimAll(await harness.worker()))[0]!
    await refuses(site, /unknown kind of settlement: null/, [SETTLE, [worker, token, '{1}', '{NULL}', false]])
    await refuses(site, /no kind of settlement/, [SETTLE, [worker, token, '{11}', '{retry}', false]])
  },
  async [CRASH_KINDS](site) {
    const harness = new Harness(site.under)
    await harness.enqueue(newJobs(2))
    const { token } = (await harness.claimAll(await harness.worker()))[0]!
    const settle = 'select holdfast.settle_crashed($1)'
    const parts = { token, delays: [0, 0], details: [null, null], records: [null, null], crashes: [0, 0] }
    const message = /has 2 open jobs/
    await refuses(site, message, [settle, [JSON.stringify([parts])]])
    await refuses(site, message, [settle, [JSON.stringify([{ ...parts, kinds: ['release'] }])]])
  },
  async [UNKNOWN_ACTION](site) {
    const { id } = await new Harness(site.under).put()
    for (const action of ['bury', null])
      await refuses(site, /unknown action/, [
        'select holdfast.change($1, null, $2, null, null)',
        [[id], action],
      ])
  },
  async [BATCH_MISSING](site) {
    const harness = new Harness(site.under)
    await harness.enqueue(newJobs(2))
    const { worker, token } = (await harness.claimAll(await harness.worker()))[0]!
    const lose = ['delete from holdfast.batch where token = $1', [token]] as const
    const message = /batch/
    await refuses(site, message, lose, [SETTLE, [worker, token, '{1}', null, false]])
    await refuses(site, message, lose, [SETTLE, [worker, token, '{1}', '{retry}', false]])
    await refuses(site, message, lose, [SETTLE, [worker, token, '{11}', null, true]])
  },
  async [BATCH_MISSING_RESCUE](site) {
    const harness = new Harness(site.under)
    const broken = await harness.running()
    const other = await harness.running()
    await using session = new Held(site)
    await session.begin('delete from holdfast.batch where token = $1', [broken.token])
    await session.commit()
    await harness.advance(LEASE_MS + SECOND_MS)
    assert.deepEqual(
      (await harness.rescue()).jobs.map(({ id }) => id),
      [other.job.id],
    )
    await assert.rejects(harness.rescue(), /lease \d+ has no batch/)
  },
  async [DEAD_KEPT](site) {
    const { id } = await new Harness(site.under).finished(DEAD)
    await refuses(site, GONE, ...suppress('dead', 'delete'), ['select holdfast.replay($1, null)', [id]])
  },
  async [CANCEL_UNWRITTEN](site) {
    const { job } = await new Harness(site.under).running()
    await refuses(site, GONE, ...suppress('lease', 'update'), [
      'select holdfast.cancel($1, null, null)',
      [job.id],
    ])
  },
  async [REPORT_UNWRITTEN](site) {
    const { worker, token } = await new Harness(site.under).running()
    const report = JSON.stringify([[token, 0, null, ['a line']]])
    await refuses(site, GONE, ...suppress('lease', 'update'), [
      'select holdfast.report($1, $2, 5)',
      [worker, report],
    ])
  },
  async [TICK_UNWRITTEN](site) {
    const [job] = JSON.parse(await enqueueJson(new Harness(site.under), 'ignore')) as [unknown]
    const fire = `select holdfast.fire('nightly', 1, 2, $1)`
    await refuses(
      site,
      GONE,
      [`insert into holdfast.schedule (id, spec) values ('nightly', '{}')`, []],
      ...suppress('schedule', 'update'),
      [fire, [JSON.stringify(job)]],
    )
  },
  async [ANSWERS_UNWRITTEN](site) {
    const jobs = await enqueueJson(new Harness(site.under), 'ignore')
    const enqueue = 'select holdfast.enqueue_unique($1, $2)'
    await refuses(site, GONE, ...suppress('intake', 'update'), [enqueue, [newFlushId(), jobs]])
  },
  async [KEY_UNWRITTEN](site) {
    const jobs = await enqueueJson(new Harness(site.under), 'replace')
    const enqueue = 'select holdfast.enqueue_unique($1, $2)'
    await refuses(site, GONE, ...suppress('unique_key', 'update'), [enqueue, [newFlushId(), jobs]])
  },
  async [HISTORY_KEPT](site) {
    const { id } = await new Harness(site.under).finished(COMPLETED)
    const discard = 'select holdfast.discard(array[$1::uuid], null)'
    await refuses(site, GONE, ...suppress('history', 'delete'), [discard, [id]])
  },
  async [HISTORY_UNWRITTEN](site) {
    const harness = new Harness(site.under)
    await harness.enqueue(newJobs(2))
    const worker = await harness.worker(MINUTE_MS)
    const held = await harness.claimAll(worker)
    await harness.cycle(
      worker,
      held.map(({ token, position }) => ({ token, position, settlement: COMPLETED, runMs: 1 })),
      null,
    )
    const discard = 'select holdfast.discard(array[$1::uuid], null)'
    await refuses(site, GONE, ...suppress('history', 'update'), [discard, [held[0]!.job.id]])
  },
}
