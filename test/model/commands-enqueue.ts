/** Enqueues in the model test: new flushes, and repeated ones. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import type { JobId } from '../../src/job/ids.ts'
import type { Due, NewJob } from '../../src/job/record.ts'
import type { OnConflict, UniqueClaim } from '../../src/job/unique.ts'
import type { StoreUnderTest } from '../../src/stores/conformance/index.ts'
import { FLUSH_MEMORY_MS, type EnqueueAnswer } from '../../src/stores/store.ts'
import { choice, command, fault, HALF_MS, lastsMs, MINUTE_MS, often, pick, type Command } from './command.ts'
import type { Model, ModelFlush } from './model.ts'

export const QUEUES = ['q1', 'q2'] as const

/** Each key has a fixed queue and rule, because the contract does not say what happens when they change. */
const KEYS = [
  { key: 'job unfinished', queue: 'q1', hold: { while: 'unfinished' } },
  { key: 'job ready', queue: 'q1', hold: { while: 'ready' } },
  { key: 'job timed', queue: 'q2', hold: { forMs: 6 * MINUTE_MS + HALF_MS } },
  { key: 'job other', queue: 'q2', hold: { while: 'unfinished' } },
] as const satisfies readonly { key: string; queue: string; hold: UniqueClaim['hold'] }[]

const onConflict = fc.constantFrom<OnConflict>('ignore', 'replace', 'reschedule')

interface Wish {
  readonly queue: number
  readonly priority: number
  readonly maxCrashes: number
  readonly due: { readonly kind: 'now' | 'in' | 'at' | 'past'; readonly ms: number }
  readonly unique: { readonly key: number; readonly onConflict: OnConflict } | null
  readonly payload: string
}

const wish: fc.Arbitrary<Wish> = fc.record({
  queue: fc.nat({ max: QUEUES.length - 1 }),
  priority: fc.constantFrom(0, 1, 5, 9),
  maxCrashes: fc.constantFrom(0, 1, 2, 3),
  due: fc.record({ kind: fc.constantFrom('now', 'now', 'now', 'in', 'at', 'past'), ms: lastsMs }),
  unique: fc.option(fc.record({ key: fc.constantFrom(0, 1, 1, 1, 2, 3), onConflict }), { freq: 2 }),
  payload: fc.json({ maxDepth: 1 }),
})

function dueOf(model: Model, { kind, ms }: Wish['due']): Due {
  switch (kind) {
    case 'now':
      return { inMs: 0 }
    case 'in':
      return { inMs: ms }
    case 'at':
      return { atMs: model.now + ms }
    case 'past':
      return { atMs: model.now - 10 * MINUTE_MS - ms }
  }
}

function jobOf(model: Model, { queue, priority, maxCrashes, due, unique, payload }: Wish): NewJob {
  const key = unique === null ? undefined : KEYS[unique.key]
  return {
    id: model.ids.job(),
    name: 'job',
    queue: key?.queue ?? QUEUES[queue] ?? 'q1',
    payload,
    priority,
    headStartMs: priority * MINUTE_MS,
    maxAttempts: 3,
    maxCrashes,
    group: null,
    limits: [],
    envelope: { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null },
    due: dueOf(model, due),
    unique:
      key === undefined || unique === null
        ? null
        : { key: key.key, hold: key.hold, onConflict: unique.onConflict },
  }
}

/** A plain job that is due now, without a key. */
export function plainJob(model: Model): NewJob {
  const due = { kind: 'now', ms: 0 } as const
  return jobOf(model, { queue: 0, priority: 5, maxCrashes: 1, due, unique: null, payload: 'null' })
}

/** Sends a flush and compares the answer with the model. The first time it also changes the model. */
export async function send(model: Model, under: StoreUnderTest, flush: ModelFlush): Promise<Iterable<JobId>> {
  const { id, jobs } = flush
  const answers = await under.store.enqueue({ id, jobs })
  if (flush.first !== null) {
    assert.deepEqual(answers, flush.first.answers, 'a repeated flush answers as the first did')
  } else {
    assert.equal(answers.length, jobs.length, 'one answer for each job')
    answers.forEach((answer, index) => apply(model, jobs[index] ?? assert.fail(), answer))
    flush.first = { answers, at: model.now }
  }
  return [...jobs.map((job) => job.id), ...answers.map((answer) => answer.id)]
}

function apply(model: Model, job: NewJob, answer: EnqueueAnswer): void {
  const { must, may } = job.unique === null ? { must: null, may: null } : model.keys.holding(job.unique.key)
  if (answer.outcome === 'inserted') {
    assert.equal(answer.id, job.id)
    assert.equal(must, null, `the key ${job.unique?.key} is free`)
    model.insert(job)
    model.keys.take(job)
    return
  }
  assert.ok(job.unique !== null, 'only a key can be in the way of a new job')
  assert.equal(answer.id, must ?? may, 'the answer names the holder of the key')
  model.absent.add(job.id)
  const outcome = model.waits(answer.id) ? OUTCOME[job.unique.onConflict] : 'duplicate'
  assert.equal(answer.outcome, outcome, 'only a waiting holder is changed, as the new job asks')
  if (outcome !== 'duplicate') change(model, answer.id, job, outcome)
}

const OUTCOME = { ignore: 'duplicate', replace: 'replaced', reschedule: 'rescheduled' } as const

function change(model: Model, id: JobId, job: NewJob, outcome: 'replaced' | 'rescheduled'): void {
  const holder = model.job(id)
  if (outcome === 'replaced') {
    holder.facts = { ...job, id }
    // The input is new, so it has no attempts yet.
    Object.assign(holder, {
      attempt: 0,
      crashes: 0,
      error: null,
      attempts: [],
      log: [],
      progress: null,
      loose: {},
    })
    if (job.unique !== null) model.keys.retake(id, job.unique)
  }
  model.moveDue(holder, job.due)
}

const enqueue = command({
  name: 'enqueue',
  params: fc.record({ wishes: fc.array(wish, { maxLength: 5 }), reversed: fc.boolean(), fault }),
  run: async (model, under, { wishes, reversed, fault: lost }) => {
    const jobs = wishes.map((one) => jobOf(model, one))
    const flush: ModelFlush = {
      id: model.ids.flush(),
      jobs: reversed ? jobs.toReversed() : jobs,
      first: null,
    }
    model.flushes.push(flush)
    // The caller will repeat a flush without an answer. The model knows it already.
    return lost === 'lostRequest' ? [] : send(model, under, flush)
  },
})

/** Repeats a flush while the store still remembers it. */
function repeatable(model: Model): ModelFlush[] {
  return model.flushes.filter(
    ({ first }) => first === null || model.now - first.at < FLUSH_MEMORY_MS - HALF_MS,
  )
}

const repeatFlush = command({
  name: 'repeatFlush',
  params: fc.record({ which: choice, copies: fc.integer({ min: 1, max: 3 }) }),
  when: (model) => repeatable(model).length > 0,
  run: async (model, under, { which, copies }) => {
    const flush = pick(repeatable(model), which) ?? assert.fail()
    const touched = await send(model, under, flush)
    const { answers } = flush.first ?? assert.fail()
    const again = await Promise.all(Array.from({ length: copies }, () => under.store.enqueue(flush)))
    for (const repeated of again) assert.deepEqual(repeated, answers)
    return touched
  },
})

export const enqueueCommands: readonly fc.Arbitrary<Command>[] = [...often(3, enqueue), repeatFlush]
