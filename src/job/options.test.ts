/** The readers; `test/options.test.ts` goes through every object of options that users pass. */
import { describe, expect, test } from 'vitest'
import { duration } from './duration.ts'
import {
  asGiven,
  boolean,
  fn,
  fraction,
  having,
  list,
  locate,
  member,
  oneOf,
  options,
  positive,
  readersFor,
  readOptions,
  record,
  secret,
  signal,
  string,
  under,
  whole,
} from './options.ts'
import type { Reader } from './options.ts'

interface Tea {
  readonly minutes?: number
  readonly milk?: boolean
}

const TEA = readersFor<Tea>()({ minutes: whole(1, 10), milk: boolean })

describe('a table', () => {
  test('has the fields of the type, or does not compile', () => {
    // @ts-expect-error a field is forgotten
    readersFor<Tea>()({ minutes: whole(1) })
    // @ts-expect-error a field is not one of the type
    readersFor<Tea>()({ minutes: whole(1), milk: boolean, sugar: boolean })
    const more = { ...TEA, sugar: boolean }
    // @ts-expect-error nor if it comes from another table
    readersFor<Tea>()({ ...more })
    expect(Object.keys(TEA)).toEqual(['minutes', 'milk'])
  })
})

describe('options', () => {
  const read = (given: unknown): object => readOptions(given, 'tea()', TEA)

  test('are what was given, without what is undefined', () => {
    expect(read({ minutes: 3, milk: undefined })).toEqual({ minutes: 3 })
    expect(Object.keys(read({ milk: undefined }))).toEqual([])
  })

  test('are each read once', () => {
    let asked = 0
    const given = {
      get minutes() {
        return ++asked
      },
    }
    expect(read(given)).toEqual({ minutes: 1 })
  })

  test('count if they are inherited, misspelt ones too', () => {
    expect(read(Object.create({ minutes: 3 }))).toEqual({ minutes: 3 })
    expect(() => read(Object.create({ minuts: 3 }))).toThrow('Unknown option `tea().minuts`.')
  })

  test.each([null, 5, 'tea', [], () => ({})])('are not %o', (given) => {
    expect(() => read(given)).toThrow(/^The options of `tea\(\)` are .+; they must be an object\.$/)
  })

  test.each(['toString', '__proto__', 'constructor'])('do not have what every object has: %s', (field) => {
    expect(() => read(JSON.parse(`{"${field}":1}`))).toThrow(`Unknown option \`tea().${field}\`.`)
  })

  test('that are unknown are shown on one line, whatever they are called', () => {
    expect(() => read({ 'a\n`b`': 1 })).toThrow('Unknown option `tea()["a\\n`b`"]`.')
  })

  test('may be refused under another code, values by their own', () => {
    const bad = expect.objectContaining({ code: 'HF_BAD_JOB' }) as Error
    expect(() => readOptions({ minuts: 1 }, 'tea()', TEA, 'HF_BAD_JOB')).toThrow(bad)
    expect(() => readOptions(null, 'tea()', TEA, 'HF_BAD_JOB')).toThrow(bad)
    expect(() => under('HF_BAD_JOB', whole(1))(0, 'a')).toThrow(bad)
    expect(() => readOptions({ minutes: 0 }, 'tea()', TEA, 'HF_BAD_JOB')).toThrow(
      expect.objectContaining({ code: 'HF_BAD_OPTION' }),
    )
  })
})

describe('a reader', () => {
  test.each<[string, Reader<unknown>, good: unknown[], bad: unknown[], accepted: string]>([
    [
      'whole',
      whole(1, 10),
      [1, 10],
      [0, 11, 2.5, Number.NaN, Infinity, '5', 5n, null],
      'a whole number from 1 to 10',
    ],
    ['whole, without an end', whole(0), [0, 2 ** 53 - 1], [-1, 2 ** 53], 'a whole number from 0'],
    ['positive', positive, [0.1, 1e9], [0, -1, Infinity, Number.NaN, '1'], 'a number above zero'],
    ['fraction', fraction, [0, 0.5, 1], [-0.1, 1.1, Number.NaN, '0'], 'a number from 0 to 1'],
    ['boolean', boolean, [true, false], [0, 'true', null], 'true or false'],
    ['fn', fn(), [String], ['x', {}, null], 'a function'],
    ['oneOf', oneOf('a', 'b'), ['a', 'b'], ['c', 5, null], "one of 'a', 'b'"],
    ['string', string(3), ['abc'], ['', 'abcd', 'a\0', '\uD83D', 5], 'a text of 1 to 3 characters'],
    ['list', list(whole(1), 2), [[], [1, 2]], ['ab', { length: 1 }, [1, 2, 3]], 'a list of at most 2'],
    ['record', record(whole(1)), [{}], [5, null, ['a']], 'an object'],
    ['having', having<Date>('getTime'), [new Date(0)], [{}, null, 'x', 5], 'an object with getTime()'],
    ['signal', signal, [AbortSignal.abort()], [{}, null, true, new AbortController()], 'an AbortSignal'],
    [
      'duration',
      duration({ minMs: 1_000, maxMs: 60_000 }),
      [1_000, '1m'],
      [999, '61s', 'x'],
      'a duration from 1s to 1m',
    ],
  ])('%s', (_, read, good, bad, accepted) => {
    for (const value of good) expect(() => read(value, 'tea().x')).not.toThrow()
    for (const value of bad) {
      expect(() => read(value, 'tea().x')).toThrow(
        expect.objectContaining({
          code: 'HF_BAD_OPTION',
          message: expect.stringMatching(/^`tea\(\)\.x` is .+; it must be .+\.$/) as string,
        }),
      )
      expect(() => read(value, 'tea().x')).toThrow(`it must be ${accepted}`)
    }
  })

  test('of a list or a record names what is wrong in it, holes and odd names too', () => {
    expect(() => list(whole(1))([1, , 3], 'a')).toThrow('`a[1]` is undefined') // oxlint-disable-line no-sparse-arrays
    expect(() => record(whole(1))({ b: 0 }, 'a')).toThrow('`a.b` is 0')
    expect(() => record(whole(1))({ 'b c': 0 }, 'a')).toThrow('`a["b c"]` is 0')
    expect(record(asGiven)(JSON.parse('{"__proto__":1}'), 'a')).toEqual(new Map([['__proto__', 1]]))
  })

  test('of options inside of options hands the path on', () => {
    const TRAY = { tea: options(TEA) }
    expect(() => readOptions({ tea: { minutes: 0 } }, 'tray()', TRAY)).toThrow('`tray().tea.minutes` is 0')
    expect(() => readOptions({ tea: 5 }, 'tray()', TRAY)).toThrow('`tray().tea` is 5; it must be an object.')
  })

  test('of a secret shows no value', () => {
    expect(() => secret('a URL')({ password: 'hush' }, 'url')).toThrow(
      /^`url` is of type object; it must be a URL\.$/,
    )
    expect(() => having<Date>('getTime')('hush', 'pool')).toThrow(/^`pool` is of type string; it must/)
  })
})

test('paths can be made beforehand', () => {
  expect(locate('tea()', TEA)).toEqual({
    path: 'tea()',
    of: { minutes: 'tea().minutes', milk: 'tea().milk' },
  })
  expect(member('a', 'b-c')).toBe('a.b-c')
})
