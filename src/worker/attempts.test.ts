/** What becomes of attempts when something goes wrong in this process, and not in a handler. */
import { describe, expect, test } from 'vitest'
import { alone, coreOf, deferred } from '../../test/support/virtual.ts'
import { plainDefinition } from '../job/definition.ts'
import type { JobId, Token, WorkerId } from '../job/ids.ts'
import type { ClaimedJob } from '../job/record.ts'
import { Attempt } from './attempt.ts'
import { Attempts, type AttemptsParts } from './attempts.ts'
import type { PendingSettle } from './settling.ts'

const broken = new Error('a bug')

function claimed(n: number): ClaimedJob {
  const envelope = { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null }
  const facts = { id: `job${n}` as JobId, name: 'job', queue: 'default', payload: 'null', maxAttempts: 4 }
  return { ...facts, envelope, attempt: 1, crashes: 0, createdAt: 0, dueAt: 0 } as unknown as ClaimedJob
}

/** Attempts whose handlers return when `gate` is opened; `given` is what goes wrong. */
function holding(given: Partial<AttemptsParts>) {
  const { hf, world, told } = alone()
  const gate = deferred()
  const core = coreOf(hf)
  const definition = { ...plainDefinition('job', 'default', core.settings), run: () => gate.promise }
  const settled: PendingSettle[] = []
  const attempts = new Attempts({
    core,
    definitionOf: () => definition,
    graceMs: 1_000,
    onGivenUp: (pending) => void settled.push(pending),
    ...given,
  })
  const start = (count: number): Attempt[] =>
    Array.from({ length: count }, (_, n) => {
      const lease = { token: (n + 1) as Token, claimedAt: 0 }
      const attempt = new Attempt(claimed(n), lease, 0, 'worker' as WorkerId, world.nowMs)
      attempts.run(attempt, world.nowMs)
      return attempt
    })
  return { world, told, gate, attempts, settled, start, timeoutMs: core.settings.jobTimeoutMs }
}

describe('a bug at the end of an attempt', () => {
  test('is told; its outcome is settled all the same, and its slot is free', async () => {
    const { world, told, gate, attempts, settled, start } = holding({
      onReturned: () => {
        throw broken
      },
    })
    start(2)
    gate.resolve()
    await world.advance(1)
    expect(told.of('worker.error')).toMatchObject([
      { worker: 'worker', doing: 'end job job0', error: broken },
      { worker: 'worker', doing: 'end job job1', error: broken },
    ])
    expect(settled.map(({ request }) => request.settlement.type)).toEqual(['completed', 'completed'])
    expect(attempts.slotsTaken).toBe(0)
    expect(attempts.running.size).toBe(0)
    attempts.clear()
  })
})

describe('a bug when an attempt is timed out', () => {
  test('is told, and all others are timed out in time', async () => {
    const given: PendingSettle[] = []
    let calls = 0
    const { world, told, attempts, start, timeoutMs } = holding({
      onGivenUp: (pending) => {
        if (++calls === 1) throw broken
        given.push(pending)
      },
    })
    start(3)
    await world.advance(10)
    const [late] = start(1)
    await world.advance(timeoutMs + 1_500)
    expect(told.of('worker.error')).toMatchObject([{ doing: 'end job job0', error: broken }])
    expect(given.map(({ attempt }) => attempt.job.id)).toEqual(['job1', 'job2', 'job0'])
    expect(given.at(-1)?.attempt).toBe(late)
    attempts.clear()
  })
})
