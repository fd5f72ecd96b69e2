import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { pino } from 'pino'
import { describe, expect, test } from 'vitest'
import type { LogLevel } from '../job/record.ts'
import { VirtualClock } from '../std/virtual-clock.ts'
import { consoleLogger, type ConsoleLoggerOptions } from './console-logger.ts'

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']
const AT = Date.UTC(2030, 0, 2, 3, 4, 5, 678)

function setUp(options: Partial<ConsoleLoggerOptions> = {}) {
  const written: string[] = []
  const logger = consoleLogger({
    sink: { write: (text) => written.push(text) },
    clock: new VirtualClock(AT),
    level: 'debug',
    format: 'tidy',
    colour: false,
    ...options,
  })
  return { logger, written }
}

/** The one line that was written, parsed. */
function parsed(written: readonly string[]): Record<string, unknown> {
  expect(written.join('').match(/\n/g)).toHaveLength(1)
  return JSON.parse(written.join('')) as Record<string, unknown>
}

function throwing(): never {
  throw new Error('gotcha')
}

describe('a tidy line', () => {
  test('has the time, a mark, the message and whom it is about', () => {
    const { logger, written } = setUp()
    logger.debug({}, 'one')
    logger.info({ id: '017f22e2-79b0-7cc3-98c4-dc0c0c07398f' }, 'two')
    logger.warn({ worker: '017f22e2-79b0-7cc3-98c4-dc0c0c000001' }, 'three')
    logger.error({ id: 'short', worker: 'w1', queue: 'default' }, 'four')
    expect(written).toEqual([
      '03:04:05.678 · one\n',
      '03:04:05.678 ● two  job …07398f\n',
      '03:04:05.678 ▲ three  worker …000001\n',
      '03:04:05.678 ✖ four  job …short worker …w1\n',
    ])
  })

  test('is coloured where that is wanted, and otherwise the same', () => {
    const plain = setUp()
    const coloured = setUp({ colour: true })
    for (const level of LEVELS) {
      plain.logger[level]({ id: 'abcdefgh' }, 'x')
      coloured.logger[level]({ id: 'abcdefgh' }, 'x')
    }
    expect(coloured.written.map(stripVTControlCharacters)).toEqual(plain.written)
    expect(new Set(coloured.written).size).toBe(4)
    expect(coloured.written.every((line) => line.includes('\u001B[0m'))).toBe(true)
  })

  test('is one line, whatever the message quotes', () => {
    const { logger, written } = setUp()
    logger.error({}, 'failed: first\n  second\r\n\tthird \u001B[31mred\u0007\n')
    expect(written).toEqual(['03:04:05.678 ✖ failed: first second third  [31mred\n'])
  })

  test('leaves out an id that is no text', () => {
    const { logger, written } = setUp()
    logger.info({ id: 5, worker: null }, 'x')
    expect(written).toEqual(['03:04:05.678 ● x\n'])
  })
})

describe('a JSON line', () => {
  test("is pino's: level, time, fields, msg", () => {
    const { logger, written } = setUp({ format: 'json' })
    logger.warn({ event: 'job.lost', id: '1', attempt: 2 }, 'hello')
    expect(written).toEqual([
      `{"level":40,"time":${AT},"event":"job.lost","id":"1","attempt":2,"msg":"hello"}\n`,
    ])
  })

  test('says the same as pino does', () => {
    const { logger, written } = setUp({ format: 'json' })
    const theirs: string[] = []
    const real = pino(
      { level: 'debug', base: null, timestamp: () => `,"time":${AT}` },
      { write: (line) => void theirs.push(line) },
    )
    const error = Object.assign(new TypeError('broken'), { code: 'E_BROKEN' })
    for (const level of LEVELS) {
      for (const fields of [{}, { a: 1, nested: { list: [1, 'x', null] } }, { event: 'x', err: error }]) {
        logger[level](fields, 'a "message"\nwith two lines')
        real[level](fields, 'a "message"\nwith two lines')
      }
    }
    expect(written.map((line) => JSON.parse(line) as unknown)).toEqual(
      theirs.map((line) => JSON.parse(line) as unknown),
    )
  })

  test('cannot have its level, time or message replaced by a field', () => {
    const { logger, written } = setUp({ format: 'json' })
    logger.error({ level: 'debug', time: 0, msg: 'other' }, 'own')
    expect(parsed(written)).toEqual({ level: 50, time: AT, msg: 'own' })
  })

  test('shows an error with its stack, and without what HTTP clients attach to theirs', () => {
    const { logger, written } = setUp({ format: 'json' })
    const err = Object.assign(new Error('401'), { config: { password: 'secret' }, toJSON: () => 'secret' })
    logger.error({ err }, 'failed')
    expect(parsed(written)['err']).toEqual({
      type: 'Error',
      message: '401',
      stack: expect.stringContaining('console-logger.test.ts'),
    })
    expect(written.join('')).not.toContain('secret')
  })

  test('shows what can be shown of values that JSON does not know', () => {
    const { logger, written } = setUp({ format: 'json' })
    const cyclic: Record<string, unknown> = { big: 5n, map: new Map([['a', 1]]) }
    cyclic['self'] = cyclic
    logger.info({ cyclic, fn: throwing, gone: undefined }, 'x')
    expect(parsed(written)).toEqual({
      level: 30,
      time: AT,
      cyclic: { big: '5', map: { a: 1 }, self: '[Circular]' },
      msg: 'x',
    })
  })

  test('keeps at least the message where the fields are too large', () => {
    const { logger, written } = setUp({ format: 'json' })
    logger.warn({ text: 'x'.repeat(100_000) }, 'm'.repeat(5_000))
    expect(parsed(written)).toEqual({ level: 40, time: AT, msg: 'm'.repeat(1_000) })
  })
})

describe.each(['tidy', 'json'] as const)('the %s logger', (format) => {
  test.each<[ConsoleLoggerOptions['level'], number]>([
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
    ['silent', 0],
  ])('at %s writes %d of the four levels', (level, count) => {
    const { logger, written } = setUp({ format, level })
    for (const at of LEVELS) logger[at]({}, at)
    expect(written).toHaveLength(count)
  })

  test.each<[string, () => object]>([
    ['a getter that throws', () => ({ get id() { return throwing() }, worker: 'w1' })], // prettier-ignore
    [
      'a proxy that throws',
      () => new Proxy({}, { get: throwing, ownKeys: throwing, getPrototypeOf: throwing }),
    ],
    [
      'an error whose message throws',
      () => ({ err: Object.defineProperty(new Error('x'), 'message', { get: throwing }) }),
    ],
    ['an error that is a proxy that throws', () => ({ err: new Proxy(new Error('x'), { get: throwing }) })],
    ['a toJSON that throws', () => ({ toJSON: throwing, a: { toJSON: throwing } })],
    ['no prototype', () => Object.create(null) as object],
  ])('writes one line for fields with %s', (_, make) => {
    const { logger, written } = setUp({ format })
    logger.error(make(), 'hello')
    expect(written).toHaveLength(1)
    expect(written[0]).toMatch(/hello.*\n$/)
    if (format === 'json') expect(parsed(written)).toMatchObject({ level: 50, time: AT, msg: 'hello' })
  })

  test('never throws and always writes one line', () => {
    const fields = fc.dictionary(
      fc.string(),
      fc.anything({ withBigInt: true, withNullPrototype: true, withMap: true }),
    )
    fc.assert(
      fc.property(
        fields,
        fc.string({ unit: 'binary' }),
        fc.constantFrom(...LEVELS),
        (given, message, level) => {
          const { logger, written } = setUp({ format })
          logger[level](given, message)
          expect(written).toHaveLength(1)
          expect(written[0]?.match(/\n/g)).toHaveLength(1)
          if (format === 'json') JSON.parse(written.join(''))
        },
      ),
    )
  })
})
