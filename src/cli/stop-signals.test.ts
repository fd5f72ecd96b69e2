import { describe, expect, test } from 'vitest'
import { letPromisesRun } from '../std/virtual-clock.ts'
import { fakeIo } from '../../test/support/fake-io.ts'
import { StopSignals } from './stop-signals.ts'

async function heard(signals: StopSignals): Promise<{ stop: boolean; hurry: boolean }> {
  const seen = { stop: false, hurry: false }
  void signals.stop.then(() => (seen.stop = true))
  void signals.hurry.then(() => (seen.hurry = true))
  await letPromisesRun()
  return seen
}

describe('signals', () => {
  test('ask to stop, then to hurry, then to exit at once', async () => {
    const io = fakeIo()
    const signals = new StopSignals(io)
    expect(await heard(signals)).toEqual({ stop: false, hurry: false })

    io.signals.emit('SIGTERM')
    expect(await heard(signals)).toEqual({ stop: true, hurry: false })

    io.signals.emit('SIGINT')
    expect(await heard(signals)).toEqual({ stop: true, hurry: true })
    expect(io.exits).toEqual([])

    io.signals.emit('SIGTERM')
    io.signals.emit('SIGINT')
    expect(io.exits).toEqual([130, 130])
  })

  test('that come twice in a moment are one, as when npm repeats what the terminal has told already', async () => {
    const io = fakeIo()
    const signals = new StopSignals(io)
    io.signals.emit('SIGINT')
    await io.clock.advance(50)
    io.signals.emit('SIGINT')
    expect(signals.hurried).toBe(false)

    await io.clock.advance(300)
    io.signals.emit('SIGINT')
    expect(signals.hurried).toBe(true)
  })

  test('are left alone once it is closed', () => {
    const io = fakeIo()
    const signals = new StopSignals(io)
    signals.close()
    expect(io.signals.listenerCount('SIGINT') + io.signals.listenerCount('SIGTERM')).toBe(0)
    expect(signals.stopping).toBe(false)
  })
})
