import { describe, expect, test } from 'vitest'
import { isFinal, isLegalMove, isWaiting, JOB_STATES, LEGAL_MOVES, type JobState } from './states.ts'

/** The picture in the design, as moves: what each is for. */
const MOVES: readonly (readonly [from: JobState, to: JobState, why: string])[] = [
  ['scheduled', 'ready', 'promoted'],
  ['scheduled', 'blocked', 'promoted into a limit'],
  ['scheduled', 'scheduled', 'rescheduled or replaced through its unique key'],
  ['scheduled', 'cancelled', 'cancelled'],
  ['blocked', 'ready', 'admitted by its limit'],
  ['blocked', 'blocked', 'replaced through its unique key'],
  ['blocked', 'scheduled', 'rescheduled through its unique key'],
  ['blocked', 'cancelled', 'cancelled'],
  ['ready', 'running', 'claimed'],
  ['ready', 'ready', 'replaced through its unique key'],
  ['ready', 'scheduled', 'rescheduled through its unique key'],
  ['ready', 'cancelled', 'cancelled'],
  ['running', 'completed', 'settled'],
  ['running', 'dead', 'failed for good'],
  ['running', 'cancelled', 'cancelled while it ran'],
  ['running', 'scheduled', 'retry, snooze, or a crash delay after rescue'],
  ['running', 'ready', 'handed back at shutdown'],
  ['running', 'blocked', 'handed back into a limit'],
  ['dead', 'ready', 'replayed'],
  ['dead', 'blocked', 'replayed into a limit'],
]
const PAIRS = JOB_STATES.flatMap((from) => JOB_STATES.map((to) => [from, to] as const))

describe('the states of a job', () => {
  test('are those of the design, everywhere the same words', () => {
    expect([...JOB_STATES].toSorted()).toEqual(
      ['scheduled', 'blocked', 'ready', 'running', 'completed', 'dead', 'cancelled'].toSorted(),
    )
    expect(Object.keys(LEGAL_MOVES).toSorted()).toEqual([...JOB_STATES].toSorted())
  })

  test.each(PAIRS)('%s → %s is legal only if the design has a reason for it', (from, to) => {
    const why = MOVES.find((move) => move[0] === from && move[1] === to)?.[2]
    expect(isLegalMove(from, to)).toBe(why !== undefined)
  })

  test.each(['completed', 'cancelled'] as const)('nothing leaves %s', (state) => {
    expect(LEGAL_MOVES[state]).toEqual([])
  })

  test('only a replay leaves dead, and nothing but running leads there', () => {
    expect(LEGAL_MOVES.dead).toEqual(['ready', 'blocked'])
    expect(JOB_STATES.filter((from) => isLegalMove(from, 'dead'))).toEqual(['running'])
  })

  test('a job runs only from ready, so that the claim never checks limits', () => {
    expect(JOB_STATES.filter((from) => isLegalMove(from, 'running'))).toEqual(['ready'])
  })

  test('a job completes only by running', () => {
    expect(JOB_STATES.filter((from) => isLegalMove(from, 'completed'))).toEqual(['running'])
  })

  test('every state can be reached from the ones that an enqueue makes', () => {
    const reached = new Set<JobState>(['scheduled'])
    for (const state of reached) LEGAL_MOVES[state].forEach((to) => reached.add(to))
    expect(reached.size).toBe(JOB_STATES.length)
  })

  test('are waiting, running or final, and only one of these', () => {
    expect(JOB_STATES.filter(isWaiting)).toEqual(['scheduled', 'blocked', 'ready'])
    expect(JOB_STATES.filter(isFinal)).toEqual(['completed', 'dead', 'cancelled'])
  })
})
