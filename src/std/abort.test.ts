import { describe, expect, test } from 'vitest'
import { LazyAbort } from './abort.ts'

describe('a lazy abort', () => {
  test('is not aborted at first, nor is its signal', () => {
    const abort = new LazyAbort()
    expect([abort.aborted, abort.reason, abort.signal.aborted]).toEqual([false, undefined, false])
  })

  test('has one signal, however often it is asked', () => {
    const abort = new LazyAbort()
    const { signal } = abort
    expect(abort.signal).toBe(signal)
    abort.abort(new Error('x'))
    expect(abort.signal).toBe(signal)
  })

  test('fires a signal that was made before, with the reason', () => {
    const abort = new LazyAbort()
    const reasons: unknown[] = []
    const { signal } = abort
    signal.addEventListener('abort', () => reasons.push(signal.reason))
    const reason = new Error('timeout')
    abort.abort(reason)
    expect(reasons).toEqual([reason])
    expect([abort.aborted, abort.reason]).toEqual([true, reason])
  })

  test('makes a signal that is aborted where it is asked for afterwards', () => {
    const abort = new LazyAbort()
    const reason = new Error('shutdown')
    abort.abort(reason)
    expect(abort.signal.aborted).toBe(true)
    expect(abort.signal.reason).toBe(reason)
  })

  test('keeps the first reason', () => {
    const abort = new LazyAbort()
    const first = new Error('first')
    let fired = 0
    abort.signal.addEventListener('abort', () => fired++)
    abort.abort(first)
    abort.abort(new Error('second'))
    expect([abort.reason, abort.signal.reason, fired]).toEqual([first, first, 1])
  })
})
