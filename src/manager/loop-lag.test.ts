import { expect, test } from 'vitest'
import type { Clock } from '../std/clock.ts'
import { LoopLag } from './loop-lag.ts'

test('the lag is the worst of this round and of the one before', () => {
  let nowMs = 0
  let turn: (() => void) | undefined
  const clock: Clock = {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    after: (_, fn) => {
      turn = fn
      return () => (turn = undefined)
    },
  }
  const lag = new LoopLag()
  const comeAfter = (ms: number): void => {
    nowMs += ms
    turn?.()
  }
  lag.start(clock)
  expect(lag.worstMs).toBe(0)
  comeAfter(1_002)
  comeAfter(4_000)
  comeAfter(1_000)
  expect(lag.worstMs).toBe(3_000)
  lag.nextRound()
  comeAfter(1_040.4)
  expect(lag.worstMs).toBe(3_000)
  lag.nextRound()
  expect(lag.worstMs).toBe(40)
  lag.stop()
  expect(turn).toBeUndefined()
  expect(lag.worstMs).toBe(0)
})
