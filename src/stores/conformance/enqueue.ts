/** Enqueues: what is written is what was given, all of it or nothing, and once for each flush however often it is sent. */
import assert from 'node:assert/strict'
import type { FlushId, JobId } from '../../job/ids.ts'
import type { ClaimedJob, NewJob } from '../../job/record.ts'
import { FLUSH_MEMORY_MS, MAX_BATCH } from '../store.ts'
import { each, type Topic } from './suite.ts'
import {
  cancelOne,
  COMPLETED,
  heldIn,
  idsOf,
  MINUTE_MS,
  newFlushId,
  newJob,
  newJobId,
  newJobs,
  QUEUE,
  retention,
  retry,
  settleRequest,
  type Harness,
} from './support.ts'

const KIB = 1_024
const PAYLOADS: readonly (readonly [what: string, payload: string])[] = [
  ['unicode', JSON.stringify('naïve 🛠️ 日本語 שלום e\u0301 \u2028 \ud83d\udc69\u200d\ud83d\udd27')],
  ['escapes', '"\\u00e9\\n\\t\\"\\\\ \\ud83d\\ude00"'],
  ['white space and doubled keys', '{ "b" : 1,\n\t"a": 2, "a": 3 }'],
  ['numbers beyond a double', '[12345678901234567890.1234567890, 1e400, -0, 1.0]'],
  ['quotes and wildcards', JSON.stringify("'; drop table jobs; -- $1 %s {0} \\x00")],
  ['256 KiB', JSON.stringify('é'.repeat(128 * KIB - 1))],
  ['128 levels', '['.repeat(128) + ']'.repeat(128)],
  ['a lone null', 'null'],
]

const { envelope: NO_ENVELOPE } = newJob()
/** Each differs from a plain job in one thing. */
const NEARLY: readonly Partial<NewJob>[] = [
  { name: 'mail.read' },
  { priority: 1 },
  { headStartMs: 1_000 },
  { maxAttempts: 5 },
  { maxCrashes: 4 },
  { group: 'tenant-1' },
  { limits: ['api'] },
  { envelope: { ...NO_ENVELOPE, tags: ['a'] } },
  { payload: '{"to":"bob"}' },
]

function factsOf(job: NewJob | ClaimedJob | undefined): object {
  assert.ok(job !== undefined, 'the job is there')
  const { id, name, priority, headStartMs, maxAttempts, maxCrashes, group, limits, envelope, payload } = job
  return { id, name, priority, headStartMs, maxAttempts, maxCrashes, group, limits, envelope, payload }
}

/** What may have become of a flush's jobs by the time that it is repeated. */
const FATES: readonly (readonly [fate: string, happen: (harness: Harness, id: JobId) => Promise<unknown>])[] =
  [
    ['still wait', async () => undefined],
    ['run', async (harness) => harness.claim(await harness.worker())],
    ['are to be retried', async (harness) => settleAll(harness, retry())],
    ['are completed', async (harness) => settleAll(harness, COMPLETED)],
    ['are cancelled', (harness, id) => cancelOne(harness.store, id, null)],
    ['are pruned', async (harness) => forgetAll(harness)],
  ]

async function settleAll(harness: Harness, settlement: Parameters<typeof settleRequest>[1]): Promise<void> {
  const worker = await harness.worker()
  const held = heldIn(worker, await harness.claim(worker))
  await harness.cycle(
    worker,
    held.map((one) => settleRequest(one, settlement)),
    null,
  )
}

async function forgetAll(harness: Harness): Promise<void> {
  await settleAll(harness, COMPLETED)
  await harness.advance(MINUTE_MS)
  await harness.store.upkeep.prune(retention({ completedMs: 1 }), 1_000)
}

async function jobCount(harness: Harness): Promise<number> {
  const { jobs } = await harness.store.admin.list({ limit: 1_000, after: null })
  return jobs.length
}

async function repeatChangesNothing(
  harness: Harness,
  id: FlushId,
  first: readonly unknown[],
  jobs: Parameters<Harness['enqueue']>[0],
): Promise<void> {
  const before = await harness.store.admin.list({ limit: 1_000, after: null })
  assert.deepEqual(await harness.enqueue(jobs, id), first, 'a repeat answers as the first did')
  const after = await harness.store.admin.list({ limit: 1_000, after: null })
  assert.deepEqual(after, before, 'a repeat changes no job and adds none')
}

export const enqueueTopic: Topic = {
  name: 'enqueue',
  tests: {
    'a transaction that the store does not know is refused, and nothing is written': async (harness) => {
      const job = newJob()
      const flush = { id: newFlushId(), jobs: [job], tx: {} }
      const code = harness.store.transactions === undefined ? 'HF_NO_TRANSACTIONS' : 'HF_BAD_OPTION'
      await assert.rejects(harness.store.enqueue(flush), { code })
      assert.equal(await harness.store.admin.get(job.id), null)
    },
    'a new job is ready at once and reads back as it was given': async (harness) => {
      const job = newJob({
        priority: 7,
        maxAttempts: 9,
        maxCrashes: 2,
        group: 'tenant-1',
        envelope: {
          correlationId: 'order-17',
          tags: ['a', 'ü'],
          metadata: { region: 'eu', 'odd "key"': '' },
          retry: { attempts: 9, backoff: 'linear', delay: '2s', jitter: false },
          timeoutMs: 1_234,
        },
      })
      await harness.enqueue([job])
      const { due: _due, unique: _unique, ...facts } = job
      const record = await harness.inState(job.id, 'ready')
      const { createdAt } = record
      assert.deepEqual(
        record,
        {
          ...facts,
          state: 'ready',
          attempt: 0,
          crashes: 0,
          createdAt,
          dueAt: createdAt,
          uniqueKey: null,
          error: null,
          attempts: [],
          log: [],
          progress: null,
        },
        'the record is the job as given, and nothing has happened to it',
      )
    },
    'every job of a flush is answered, in order': async (harness) => {
      const jobs = [
        ...newJobs(3),
        newJob({ queue: 'other' }),
        newJob({ due: { inMs: MINUTE_MS } }),
      ].toReversed()
      const answers = await harness.enqueue(jobs)
      assert.deepEqual(
        answers,
        jobs.map(({ id }) => ({ id, outcome: 'inserted' })),
      )
      for (const job of jobs) assert.equal((await harness.record(job.id)).queue, job.queue)
    },
    'jobs of one flush that are nearly alike keep what sets them apart': async (harness) => {
      const plain = newJob()
      const jobs = NEARLY.flatMap((parts) => [
        { ...plain, id: newJobId() },
        { ...plain, ...parts, id: newJobId() },
      ])
      await harness.enqueue(jobs)
      const held = await harness.claimAll(await harness.worker(), { limit: 100 })
      const byId = new Map(held.map(({ job }) => [job.id, job]))
      for (const job of jobs) {
        assert.deepEqual(factsOf(await harness.record(job.id)), factsOf(job), 'by admin.get')
        assert.deepEqual(factsOf(byId.get(job.id)), factsOf(job), 'by a claim')
      }
    },
    'an empty flush is answered with nothing': async (harness) => {
      assert.deepEqual(await harness.enqueue([]), [])
    },
    'the largest flush is written and can be claimed in one batch': async (harness) => {
      const jobs = newJobs(MAX_BATCH)
      assert.equal((await harness.enqueue(jobs)).length, MAX_BATCH)
      const claimed = await harness.claimIds(await harness.worker(), { limit: MAX_BATCH })
      assert.deepEqual(claimed, idsOf(jobs), 'all of them, in order')
    },
    ...each(
      PAYLOADS,
      ([what]) => `a payload reads back byte for byte: ${what}`,
      async (harness, [, payload]) => {
        const job = await harness.put({ payload })
        assert.ok((await harness.record(job.id)).payload === payload, 'by admin.get')
        const held = await harness.claimOne(await harness.worker())
        assert.ok(held.job.payload === payload, 'by a claim')
      },
    ),
    ...each(
      FATES,
      ([fate]) => `a repeated flush is answered as the first and writes nothing when its jobs ${fate}`,
      async (harness, [, happen]) => {
        const id = newFlushId()
        const job = newJob()
        const first = await harness.enqueue([job], id)
        await happen(harness, job.id)
        await repeatChangesNothing(harness, id, first, [job])
      },
    ),
    'a flush sent many times at once is written once': async (harness) => {
      const id = newFlushId()
      const jobs = newJobs(20)
      const answers = await Promise.all(Array.from({ length: 10 }, () => harness.enqueue(jobs, id)))
      for (const answer of answers) assert.deepEqual(answer, answers[0], 'all senders get the same answer')
      assert.deepEqual(await harness.claimIds(await harness.worker(), { limit: 1_000 }), idsOf(jobs))
    },
    'nobody ever sees half a flush': async (harness) => {
      const writing = harness.enqueue(newJobs(300))
      const seen: number[] = []
      const watching = Array.from({ length: 20 }, async () => {
        const queues = await harness.store.admin.queues()
        seen.push(queues.find(({ queue }) => queue === QUEUE)?.counts.ready ?? 0)
      })
      await Promise.all([writing, ...watching])
      assert.deepEqual(
        seen.filter((count) => count !== 0 && count !== 300),
        [],
        'a look shows none or all of the jobs',
      )
    },
    'a flush is remembered for its whole time, also across prunes': async (harness) => {
      const id = newFlushId()
      const job = newJob()
      const first = await harness.enqueue([job], id)
      await settleAll(harness, COMPLETED)
      await harness.advance(FLUSH_MEMORY_MS - MINUTE_MS)
      await harness.store.upkeep.prune(retention({ completedMs: 1 }), 1_000)
      await harness.put()
      await repeatChangesNothing(harness, id, first, [job])
      assert.equal(await harness.store.admin.get(job.id), null, 'the pruned job does not come back')
    },
    'different flushes at once are all written': async (harness) => {
      await Promise.all(Array.from({ length: 20 }, () => harness.enqueue(newJobs(3))))
      assert.equal(await jobCount(harness), 60)
    },
  },
}
