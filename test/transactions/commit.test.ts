/** Exactly-once effects by the store: what a handler wrote and the completion of its job, both or neither, on PostgreSQL. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { freshDatabase, sharedPostgres, type Database } from '../support/servers/database.ts'
import { withClient } from '../support/servers/client.ts'
import { holdfast, type CommitTx } from 'holdfast'
import { memoryStore } from 'holdfast/memory'
import { postgresStore } from 'holdfast/postgres'
import type { Transactions } from 'holdfast/store'
import { z } from 'zod'
import { eventually } from '../support/until.ts'
import { deferred, Told } from '../support/virtual.ts'

let database: Database
beforeAll(async () => {
  database = await freshDatabase(sharedPostgres(18))
  await withClient(database.url, (client) => client.query('create table effects (what text)'))
})
afterAll(() => database.drop())

let schemas = 0
const open = () =>
  holdfast({ store: postgresStore({ url: database.url, schema: `commit_${schemas++}` }), logger: false })

async function effects(): Promise<unknown[]> {
  const { rows } = await withClient(database.url, (client) => client.query('select what from effects'))
  return (rows as { what: string }[]).map(({ what }) => what)
}

/** Resolves when the only worker has been renewed. */
async function nextBeat(schema: string): Promise<void> {
  await withClient(database.url, async (client) => {
    const expiry = async (): Promise<unknown> =>
      (await client.query(`select expires_at from ${schema}.worker`)).rows[0]
    const before = await expiry()
    await eventually(async () => expect(await expiry()).not.toEqual(before))
  })
}

const note = (tx: CommitTx, what: string) => tx.query('insert into effects values ($1)', [what])

describe('commit', { timeout: 30_000 }, () => {
  beforeEach(() =>
    withClient(database.url, (client) => client.query('truncate effects')).then(() => undefined),
  )

  test('writes the effect and completes the job with what it resolves to, whatever the handler does then', async () => {
    const hf = open()
    const job = hf.job({
      name: 'pay',
      async run({ commit }) {
        await commit(async (tx) => {
          await note(tx, 'paid')
          return { paid: true }
        })
        throw new Error('too late to fail')
      },
    })
    await hf.work()
    const handle = await job.enqueue()
    expect(await handle.result()).toEqual({ paid: true })
    expect(await effects()).toEqual(['paid'])
    await hf.close()
  })

  test('ends the lease, which is no loss to a handler that goes on', async () => {
    const hf = open()
    const schema = `commit_${schemas - 1}`
    const lost: unknown[] = []
    hf.on('job.lost', (facts) => void lost.push(facts))
    const job = hf.job({
      name: 'pay',
      async run({ commit, signal }) {
        await commit((tx) => note(tx, 'paid'))
        // Goes on during two heartbeats, which do not know the lease any more.
        for (let beats = 0; beats < 2; beats++) await nextBeat(schema)
        signal.throwIfAborted()
      },
    })
    const ended = new Promise((resolve) => hf.on('job.completed', resolve))
    await hf.work({ lease: '1s' })
    await job.enqueue()
    await Promise.race([ended, new Promise((resolve) => hf.on('job.lost', resolve))])
    expect(lost).toEqual([])
    expect(await effects()).toEqual(['paid'])
    await hf.close()
  })

  test('completes the job in the name of the worker that ran it', async () => {
    const hf = open()
    const schema = `commit_${schemas - 1}`
    let ran: unknown
    const job = hf.job({
      name: 'pay',
      run: ({ commit }) =>
        commit(async (tx) => {
          ran = (await tx.query(`select worker from ${schema}.lease`)).rows
        }),
    })
    await hf.work()
    await (await job.enqueue()).result()
    const { rows } = await withClient(database.url, (client) =>
      client.query(`select worker from ${schema}.history`),
    )
    expect(rows).toEqual([{ worker: expect.any(String) }])
    expect(rows).toEqual(ran)
    await hf.close()
  })

  test('keeps nothing of a write that throws, and the job fails as ever', async () => {
    const hf = open()
    const job = hf.job({
      name: 'pay',
      retry: { attempts: 1 },
      run: ({ commit }) =>
        commit(async (tx) => {
          await note(tx, 'half')
          throw new Error('declined')
        }),
    })
    await hf.work()
    const handle = await job.enqueue()
    await expect(handle.result()).rejects.toMatchObject({ code: 'HF_JOB_FAILED' })
    expect(await effects()).toEqual([])
    await hf.close()
  })

  test('is refused where the lease is gone: nothing of a zombie is kept', async () => {
    const hf = open()
    const job = hf.job({
      name: 'slow',
      retry: { attempts: 1 },
      async run({ commit, job: { id } }) {
        const schema = `commit_${schemas - 1}`
        await withClient(database.url, (client) =>
          client.query(
            `with gone as (delete from ${schema}.lease returning token)
             insert into ${schema}.revoked select token from gone`,
          ),
        )
        return commit(async (tx) => {
          await note(tx, `by a zombie: ${id}`)
        })
      },
    })
    const lost = new Promise<void>((resolve) => void hf.on('job.lost', () => resolve()))
    await hf.work({ lease: '2s' })
    await job.enqueue()
    await lost
    expect(await effects()).toEqual([])
    await hf.close()
  })

  test('counts once: a second one is refused, and undoes nothing', async () => {
    const hf = open()
    let second: unknown
    const job = hf.job({
      name: 'twice',
      async run({ commit }) {
        await commit((tx) => note(tx, 'first'))
        second = await commit((tx) => note(tx, 'second')).catch((error: unknown) => error)
      },
    })
    await hf.work()
    await (await job.enqueue()).result()
    expect(second).toMatchObject({ code: 'HF_COMMITTED' })
    expect(await effects()).toEqual(['first'])
    await hf.close()
  })

  test('enqueues other jobs with it, by { tx }', async () => {
    const hf = open()
    const ran = deferred<number>()
    const next = hf.job({ name: 'next', input: z.int(), run: ({ input }) => ran.resolve(input) })
    const job = hf.job({
      name: 'both',
      retry: { attempts: 2, delay: 1 },
      run: ({ commit, job: { attempt } }) =>
        commit(async (tx) => {
          await next.enqueue(attempt, { tx })
          if (attempt === 1) throw new Error('not yet')
        }),
    })
    await hf.work()
    await (await job.enqueue()).result()
    // The attempt that threw has left nothing.
    expect(await ran.promise).toBe(2)
    await hf.close()
  })

  test('that the store loses makes the job run again, without using an attempt', async () => {
    const memory = memoryStore()
    let commits = 0
    const commit: Transactions['commit'] = async ({ worker, token, position, runMs, forget }, write) => {
      const settlement = await write({})
      // The first one is acknowledged and lost.
      if (commits++ > 0)
        await memory.cycle({
          worker,
          settle: [{ token, position, settlement, runMs: runMs(), forget }],
          claim: null,
        })
    }
    const hf = holdfast({ store: { ...memory, transactions: { commit } }, logger: false })
    const told = new Told(hf)
    const job = hf.job({ name: 'pay', retry: { attempts: 1 }, run: (ctx) => ctx.commit(async () => commits) })
    await hf.work()
    const handle = await job.enqueue()
    expect(await handle.result()).toBe(1)
    expect(await handle.read()).toMatchObject({ state: 'completed', attempt: 1 })
    await hf.close()
    const ends = told.about(handle.id).filter((name) => name !== 'job.enqueued' && name !== 'job.started')
    expect(ends).toEqual(['commit.lost', 'job.completed'])
  })

  test('is refused on a store without transactions', async () => {
    const hf = holdfast({ store: 'memory:', logger: false })
    const job = hf.job({ name: 'pay', retry: { attempts: 1 }, run: ({ commit }) => commit(async () => 1) })
    await hf.work()
    const failed = new Promise<Error>((resolve) => void hf.on('job.failed', ({ error }) => resolve(error)))
    await job.enqueue()
    expect(await failed).toMatchObject({ code: 'HF_NO_TRANSACTIONS' })
    await hf.close()
  })
})
