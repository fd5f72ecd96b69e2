/**
 * A server that loses a claim: claims do not wait for the disk, and the server crashes right after it has answered one.
 * The jobs start again under a greater token, and a settle under the old token is refused.
 */
import type { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Token } from '../../../src/job/ids.ts'
import { COMPLETED, newFlushId, newJob, newWorkerId } from '../../../src/stores/conformance/support.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import type { Lease, SettleAnswer, Store } from '../../../src/stores/store.ts'
import { withClient } from '../../support/servers/client.ts'
import { startPostgres, type PostgresServer } from '../../support/servers/postgres-server.ts'
import { until } from '../../support/until.ts'

/** Any other commit in between flushes the log, and then nothing is lost. */
const MOST_TRIES = 10

let server: PostgresServer
let store: Store
const worker = newWorkerId()

beforeAll(async () => {
  server = await startPostgres({
    version: 18,
    // The background writer must not flush the log for a commit that does not wait for it.
    settings: { fsync: 'off', wal_writer_delay: '10s', autovacuum: 'off' },
  })
  store = postgresStore({ url: server.url() })
  await store.open()
  await store.register(worker, 600_000)
})

afterAll(async () => {
  await store.close()
  await server.dispose()
})

async function claim(): Promise<readonly Lease[]> {
  const request = { queue: 'default', limit: 2, suspects: true }
  return (await store.cycle({ worker, settle: [], claim: request })).leases
}

async function complete(leases: readonly Lease[]): Promise<readonly SettleAnswer[]> {
  const settle = leases.map(({ token }) => ({ token, position: 0, settlement: COMPLETED, runMs: 1 }))
  return (await store.cycle({ worker, settle, claim: null })).settled
}

/** Two leases of one claim, the first of which takes a token that the log does not cover yet. */
async function claimTwo(): Promise<readonly Lease[]> {
  const jobs = [newJob(), newJob()]
  await store.enqueue({ id: newFlushId(), jobs })
  await withClient(server.url(), async (client) => {
    await client.query('update holdfast.ready set crashes = 1, lane = 10 where id = $1', [jobs[0]!.id])
    for (let covered = true; covered;) {
      await client.query(`select nextval('holdfast.lease_token')`)
      const { rows } = await client.query<{ covered: boolean }>(
        'select log_cnt > 0 as covered from holdfast.lease_token',
      )
      covered = rows[0]!.covered
    }
  })
  return claim()
}

test('its jobs start again under greater tokens, and a settle under the old ones is refused', async () => {
  for (let tries = 1; ; tries++) {
    const first = await claimTwo()
    expect(first).toHaveLength(2)
    await server.restart('immediate')
    let second: readonly Lease[] = []
    await until('an answer', async () => {
      second = await claim().catch(() => [])
      return second.length > 0 || (await store.admin.get(first[0]!.jobs[0]!.id))?.state === 'running'
    })
    if (second.length === 0 && tries < MOST_TRIES) {
      expect(await complete(first)).toEqual(['written', 'written'])
      continue
    }
    const idsIn = (leases: readonly Lease[]): string[] =>
      leases.flatMap(({ jobs }) => jobs.map(({ id }) => id)).sort()
    expect(idsIn(second)).toEqual(idsIn(first))
    const before = Math.max(...first.map(({ token }) => token))
    for (const { token } of second) expect(token).toBeGreaterThan(before)
    expect(await complete(first)).toEqual(['lost', 'lost'])
    expect(await complete(second)).toEqual(['written', 'written'])
    expect(await complete(second)).toEqual(['already', 'already'])
    return
  }
})

/** A claim that stays open while others claim: its token is smaller than theirs, and it commits later. */
async function slowClaim(client: Client): Promise<{ token: Token; commit: () => Promise<unknown> }> {
  await client.query('begin')
  const { rows } = await client.query<{ answer: string }>(
    `select holdfast.cycle($1, null, null, null, null, null, null, null, null, false, 'default', 1, '{0}',
      '{-1000000000000000}', '{1000000000000000}') as answer`,
    [worker],
  )
  const token = Number(rows[0]!.answer.split('\x1c')[2]!.split('\x1d')[0]) as Token
  return { token, commit: () => client.query('commit') }
}

test.each([
  { before: 'any claim after the crash', claimsFirst: false },
  { before: 'another claim', claimsFirst: true },
])(
  'a settle under a lost token is refused, also if a greater token reached the disk, before $before',
  async ({ claimsFirst }) => {
    for (let tries = 1; ; tries++) {
      const jobs = [newJob(), newJob()]
      await store.enqueue({ id: newFlushId(), jobs })
      const [token, durable] = await withClient(server.url(), async (client) => {
        const slow = await slowClaim(client)
        const leases = await claim()
        // Waits for the disk, which flushes everything that was committed before.
        await store.enqueue({ id: newFlushId(), jobs: [newJob({ queue: 'other' })] })
        await slow.commit()
        return [slow.token, leases[0]!]
      })
      expect(durable.token).toBeGreaterThan(token)
      await server.restart('immediate')
      await until('an answer', () => store.admin.queues().then(Boolean, () => false))
      const lost = { ...durable, token }
      const states = await Promise.all(jobs.map(async ({ id }) => (await store.admin.get(id))?.state))
      if (!states.includes('ready') && tries < MOST_TRIES) {
        expect(await complete([lost, durable])).toEqual(['written', 'written'])
        // Makes the first claim after the crash, which later claims wait for.
        expect(await claim()).toEqual([])
        continue
      }
      expect(new Set(states)).toEqual(new Set(['ready', 'running']))
      const again = claimsFirst ? await claim() : []
      expect(await complete([lost, durable])).toEqual(['lost', 'written'])
      expect(await complete([durable]), 'its history proves that it was finished').toEqual(['already'])
      expect(await complete(claimsFirst ? again : await claim())).toEqual(['written'])
      return
    }
  },
)
