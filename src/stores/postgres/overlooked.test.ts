/** Separate scans for jobs that no wake-up announced: what goes wrong in them is told, unless claims tell of it anyway. */
import { describe, expect, test } from 'vitest'
import { Busy, QUEUE, sweptShare } from '../../../test/support/busy-lanes.ts'
import { HoldfastError } from '../../errors.ts'
import { Background } from './background.ts'
import type { Queryable } from './executor.ts'
import { readNames } from './names.ts'
import { sweepBeside } from './overlooked.ts'
import { statementsFor } from './statements.ts'

/** A worker whose sweeps became too expensive for its claims, for ten minutes, with this in place of the database. */
async function sweepFor10Minutes(
  query: () => Promise<unknown[]>,
): Promise<{ tries: number; told: string[] }> {
  const busy = new Busy()
  for (let turn = 0; turn < 2_000; turn++) busy.turn((ranges) => 1 + 1_000 * sweptShare(ranges))
  const told: string[] = []
  const clock = { monotonicMs: () => busy.monotonicMs }
  const background = new Background(clock, (line) => void told.push(line))
  const db = { query: query as Queryable['query'], script: async () => undefined }
  const parts = { db, statements: statementsFor(readNames({})), lanes: busy.lanes, clock, background }
  let tries = 0
  for (const untilMs = busy.monotonicMs + 600_000; busy.monotonicMs < untilMs; busy.monotonicMs += 50) {
    const window = busy.lanes.nextWindow(QUEUE)
    if (window === null) continue
    tries++
    await sweepBeside(parts, QUEUE, window)
  }
  return { tries, told }
}

describe('a sweep that fails', () => {
  test.each([
    [
      'because of a missing right',
      'The database denied access (SQLSTATE 42501).',
      () =>
        Promise.reject(new HoldfastError('HF_STORE_DENIED', 'The database denied access (SQLSTATE 42501).')),
    ],
    [
      'because of a bug',
      'this field cannot be read',
      () => Promise.reject(new TypeError('this field cannot be read')),
    ],
    ['because its function is broken', 'The postgres store', async () => []],
  ])('%s is told once a minute, and backed off', async (_, message, query) => {
    const { tries, told } = await sweepFor10Minutes(query)
    expect(told[0]).toContain('The postgres store could not look for jobs that no wake-up announced.')
    expect(told[0]).toContain(message)
    expect(told.length).toBeGreaterThan(5)
    expect(told.length).toBeLessThanOrEqual(10)
    // 1, 2, 4 … seconds apart, then a minute.
    expect(tries).toBeLessThanOrEqual(25)
  })

  test.each([
    ['away', () => Promise.reject(new Error('connect ECONNREFUSED'))],
    ['slow', () => Promise.reject(new HoldfastError('HF_STORE_UNREACHABLE', 'No answer.'))],
    ['closed', () => Promise.reject(new HoldfastError('HF_CLOSED', 'The database connection is closed.'))],
  ])('because the store is %s is not told, and soon tried again', async (_, query) => {
    const { tries, told } = await sweepFor10Minutes(query)
    expect(told).toEqual([])
    expect(tries).toBeGreaterThan(1_000)
  })
})
