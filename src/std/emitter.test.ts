import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { Emitter, type Listener } from './emitter.ts'
import { letPromisesRun } from './virtual-clock.ts'

interface Events {
  ping: number
  pong: string
}

function setUp() {
  const errors: [error: unknown, event: string][] = []
  const emitter = new Emitter<Events>((error, event) => errors.push([error, event]))
  const heard: string[] = []
  const listener =
    (name: string): Listener<number> =>
    (event) =>
      void heard.push(`${name} ${event}`)
  return { emitter, errors, heard, listener }
}

/** As a query builder is one. */
function thenable(then: (resolve: () => void, reject: (error: Error) => void) => void): object {
  return Object.fromEntries([[['th', 'en'].join(''), then]])
}

describe('an emitter', () => {
  test('tells every listener of the event, in the order they came, and no other', () => {
    const { emitter, heard, listener } = setUp()
    emitter.on('ping', listener('a'))
    emitter.on('ping', listener('b'))
    emitter.on('pong', (event) => void heard.push(event))
    emitter.emit('ping', 1)
    expect(heard).toEqual(['a 1', 'b 1'])
  })

  test('knows whether anybody listens', () => {
    const { emitter, listener } = setUp()
    expect(emitter.has('ping')).toBe(false)
    const stops = [emitter.on('ping', listener('a')), emitter.on('ping', listener('b'))]
    expect([emitter.has('ping'), emitter.has('pong')]).toEqual([true, false])
    stops[0]?.()
    expect(emitter.has('ping')).toBe(true)
    stops[1]?.()
    expect(emitter.has('ping')).toBe(false)
    emitter.emit('ping', 1)
  })

  test('tells a function that is registered twice twice, and removes it once at a time', () => {
    const { emitter, heard, listener } = setUp()
    const twice = listener('twice')
    const stopFirst = emitter.on('ping', twice)
    const stopSecond = emitter.on('ping', twice)
    emitter.emit('ping', 1)
    stopFirst()
    stopFirst()
    emitter.emit('ping', 2)
    stopSecond()
    emitter.emit('ping', 3)
    expect(heard).toEqual(['twice 1', 'twice 1', 'twice 2'])
  })

  test('is not disturbed by a listener that throws', () => {
    const { emitter, errors, heard, listener } = setUp()
    const error = new Error('thrown')
    emitter.on('ping', listener('before'))
    emitter.on('ping', () => {
      throw error
    })
    emitter.on('ping', listener('after'))
    emitter.emit('ping', 1)
    expect(heard).toEqual(['before 1', 'after 1'])
    expect(errors).toEqual([[error, 'ping']])
  })

  test.each<[string, () => unknown]>([
    ['an async function', async () => Promise.reject(new Error('rejected'))],
    ['a promise of another realm', () => runInNewContext("Promise.reject(new Error('rejected'))")],
    ['a thenable', () => thenable((_, reject) => reject(new Error('rejected')))],
    ['a thenable that throws', () => thenable(() => expect.fail('rejected'))],
  ])('is not disturbed by a listener that rejects, by %s', async (_, reject) => {
    const { emitter, errors, heard, listener } = setUp()
    emitter.on('ping', reject as Listener<number>)
    emitter.on('ping', listener('after'))
    emitter.emit('ping', 1)
    await letPromisesRun()
    expect(heard).toEqual(['after 1'])
    expect(errors).toEqual([[expect.objectContaining({ message: 'rejected' }), 'ping']])
  })

  test('does not wait for a listener', () => {
    const { emitter, heard, listener } = setUp()
    emitter.on('ping', () => new Promise(() => undefined))
    emitter.on('ping', listener('next'))
    emitter.emit('ping', 1)
    expect(heard).toEqual(['next 1'])
  })

  test('leaves out nobody when a listener removes itself while being told', () => {
    const { emitter, heard, listener } = setUp()
    const stop = emitter.on('ping', (event) => {
      heard.push(`once ${event}`)
      stop()
    })
    emitter.on('ping', listener('b'))
    emitter.on('ping', listener('c'))
    emitter.emit('ping', 1)
    emitter.emit('ping', 2)
    expect(heard).toEqual(['once 1', 'b 1', 'c 1', 'b 2', 'c 2'])
  })

  test('tells a listener that was added while telling only of the next event', () => {
    const { emitter, heard, listener } = setUp()
    const stop = emitter.on('ping', () => {
      emitter.on('ping', listener('new'))
      stop()
    })
    emitter.emit('ping', 1)
    emitter.emit('ping', 2)
    expect(heard).toEqual(['new 2'])
  })

  test('can be emitted to by a listener', () => {
    const { emitter, heard, listener } = setUp()
    emitter.on('ping', (event) => {
      if (event < 3) emitter.emit('ping', event + 1)
    })
    emitter.on('ping', listener('b'))
    emitter.emit('ping', 1)
    expect(heard).toEqual(['b 3', 'b 2', 'b 1'])
  })
})
