import { describe, expect, test } from 'vitest'
import { isFinal, isLegalMove, isWaiting, JOB_STATES, LEGAL_MOVES, type StoredState } from './states.ts'

/** The picture in the design, as moves: what each is for. */
const MOVES: readonly (readonly [from: StoredState, to: StoredState, why: string])[] = [
  ['scheduled', 'ready', 'promoted'],
  ['scheduled', 'scheduled', 'rescheduled or replaced through its unique key'],
  ['scheduled', 'cancelled', 'cancelled'],
  ['ready', 'running', 'claimed'],
  ['ready', 'ready', 'replaced through its unique key'],
  ['ready', 'scheduled', 'rescheduled through its unique key'],
  ['ready', 'cancelled', 'cancelled'],
  ['running', 'completed', 'settled'],
  ['running', 'dead', 'failed for good'],
  ['running', 'cancelled', 'cancelled while it ran'],
  ['running', 'scheduled', 'retry, snooze, or a crash delay after rescue'],
  ['running', 'ready', 'handed back at shutdown'],
  ['dead', 'ready', 'replayed'],
]
const STORED = Object.keys(LEGAL_MOVES) as StoredState[]
const PAIRS = STORED.flatMap((from) => STORED.map((to) => [from, to] as const))

describe('the states of a job', () => {
  test('are those of the design, everywhere the same words', () => {
    expect([...JOB_STATES].toSorted()).toEqual(
      ['scheduled', 'blocked', 'ready', 'running', 'completed', 'dead', 'cancelled'].toSorted(),
    )
    expect(STORED.toSorted()).toEqual(JOB_STATES.filter((state) => state !== 'blocked').toSorted())
  })

  test.each(PAIRS)('%s → %s is legal only if the design has a reason for it', (from, to) => {
    const why = MOVES.find((move) => move[0] === from && move[1] === to)?.[2]
    expect(isLegalMove(from, to)).toBe(why !== undefined)
  })

  test.each(['completed', 'cancelled'] as const)('nothing leaves %s', (state) => {
    expect(LEGAL_MOVES[state]).toEqual([])
  })

  test('only a replay leaves dead, and nothing but running leads there', () => {
    expect(LEGAL_MOVES.dead).toEqual(['ready'])
    expect(STORED.filter((from) => isLegalMove(from, 'dead'))).toEqual(['running'])
  })

  test('a job runs only from ready', () => {
    expect(STORED.filter((from) => isLegalMove(from, 'running'))).toEqual(['ready'])
  })

  test('a job completes only by running', () => {
    expect(STORED.filter((from) => isLegalMove(from, 'completed'))).toEqual(['running'])
  })

  test('every state can be reached from the ones that an enqueue makes', () => {
    const reached = new Set<StoredState>(['scheduled'])
    for (const state of reached) LEGAL_MOVES[state].forEach((to) => reached.add(to))
    expect(reached.size).toBe(STORED.length)
  })

  test('are waiting, running or final, and only one of these', () => {
    expect(JOB_STATES.filter(isWaiting)).toEqual(['scheduled', 'blocked', 'ready'])
    expect(JOB_STATES.filter(isFinal)).toEqual(['completed', 'dead', 'cancelled'])
  })
})
