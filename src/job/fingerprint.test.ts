import { describe, expect, test } from 'vitest'
import { systemClock } from '../std/clock.ts'
import { fingerprintOf, normaliseMessage } from './fingerprint.ts'

const STACK = [
  'Error: x',
  '    at parse (node:internal/modules/esm/loader:12:3)',
  '    at Pool.query (/app/node_modules/pg/lib/pool.js:45:11)',
  '    at charge (file:///srv/app/src/billing.ts:88:15)',
  '    at async run (file:///srv/app/src/jobs.ts:10:3)',
].join('\n')

const of = (message: string, stack: string | null = STACK, name = 'Error'): string =>
  fingerprintOf({ name, message, stack })

describe('errors have the same fingerprint where only', () => {
  test.each<[string, string, string]>([
    ['numbers differ', 'order 17 not found', 'order 9000 not found'],
    ['decimals differ', 'took 1.5 s', 'took 12.25 s'],
    [
      'ids differ',
      'user 017f22e2-79b0-7cc3-98c4-dc0c0c07398f is gone',
      'user 017F22E2-79B0-7CC3-98C4-DC0C0C073990 is gone',
    ],
    ['hashes differ', 'commit 9f86d081884c7d65 is bad', 'commit 60303ae22b998861bce3 is bad'],
    ['object ids differ', 'document 507f1f77bcf86cd799439011', 'document 507f191e810c19729de860ea'],
    ['addresses differ', 'segfault at 0x7ffeb1', 'segfault at 0x1f'],
    ['paths differ', 'cannot read /tmp/a1/in.csv', 'cannot read /var/data/b2/out.csv'],
    ['quoted texts differ', 'no column "name" here', 'no column "first name" here'],
    ['single-quoted texts differ', "no such table: 'a b'", "no such table: 'c'"],
    ['texts in backticks differ', 'unknown field `a`', 'unknown field `b`'],
    [
      'IP addresses and ports differ',
      'connect ECONNREFUSED 127.0.0.1:5432',
      'connect ECONNREFUSED 10.1.22.3:6379',
    ],
    ['URLs differ', 'GET https://api.test/v1/users/17 failed', 'GET https://api.test/v2/orders/9 failed'],
  ])('%s', (_, a, b) => {
    expect(of(a)).toBe(of(b))
  })

  test('line numbers differ, for lines move with every deploy', () => {
    expect(of('x', STACK.replaceAll(/:\d+:\d+/g, ':1:1'))).toBe(of('x'))
  })

  test('the folder of the deploy differs', () => {
    expect(of('x', STACK.replaceAll('/srv/app/', '/srv/releases/20300101/'))).toBe(of('x'))
  })

  test('frames of Node and of packages differ', () => {
    const other = STACK.replace('Pool.query', 'Client.query').replace('esm/loader', 'cjs/loader')
    expect(of('x', other)).toBe(of('x'))
  })

  test('a caller further up differs', () => {
    expect(of('x', STACK.replace('async run', 'async runAll'))).toBe(of('x'))
  })

  test('the system differs that it ran on', () => {
    const at = (path: string): string => `Error: x\n    at charge (${path}:88:15)`
    expect(of('x', at('C:\\app\\src\\billing.ts'))).toBe(of('x', at('/srv/app/src/billing.ts')))
  })
})

describe('errors have different fingerprints where', () => {
  test.each<[string, string, string]>([
    ['the messages differ', 'order not found', 'order not paid'],
    [
      'apostrophes stand around what differs',
      "Couldn't load the user's cart",
      "Couldn't save the user's cart",
    ],
    ['short words of letters differ that could be hexadecimal', 'bad face', 'bad cafe'],
  ])('%s', (_, a, b) => {
    expect(of(a)).not.toBe(of(b))
  })

  test('the classes differ', () => {
    expect(of('x', STACK, 'TypeError')).not.toBe(of('x', STACK, 'RangeError'))
  })

  test('the first frame of their own differs, by function or by file', () => {
    expect(of('x', STACK.replace('charge', 'refund'))).not.toBe(of('x'))
    expect(of('x', STACK.replace('billing.ts', 'orders.ts'))).not.toBe(of('x'))
  })
})

describe('a fingerprint', () => {
  test('is 16 hexadecimal digits, and always the same', () => {
    expect(of('x')).toMatch(/^[0-9a-f]{16}$/)
    expect(of('x')).toBe(of('x'))
  })

  test('needs no stack, nor a frame of its own in it', () => {
    expect(of('x', null)).toMatch(/^[0-9a-f]{16}$/)
    expect(of('x', 'Error: x\n    at node:internal/timers:1:2')).toBe(of('x', null))
  })

  test('knows frames without a function', () => {
    expect(of('x', 'Error: x\n    at file:///srv/app/src/a.ts:1:2')).not.toBe(
      of('x', 'Error: x\n    at file:///srv/app/src/b.ts:1:2'),
    )
    expect(of('x', 'Error: x\n    at file:///srv/app/src/a.ts:1:2')).toBe(
      of('x', 'Error: x\n    at async file:///srv/app/src/a.ts:9:9'),
    )
  })

  test('looks at the beginning of a long message only', () => {
    const long = 'x'.repeat(500)
    expect(of(`${long} a`)).toBe(of(`${long} b`))
    expect(of(`a ${long}`)).not.toBe(of(`b ${long}`))
  })

  test('is quick about hostile stacks', () => {
    const before = systemClock.monotonicMs()
    for (const line of [' ('.repeat(4_000), ':1'.repeat(4_000), '/a'.repeat(4_000), ' '.repeat(8_000)]) {
      of('x'.repeat(8_000), `    at ${line}`)
    }
    expect(systemClock.monotonicMs() - before).toBeLessThan(1_000)
  })

  test('has a message that people can read, before it is hashed', () => {
    expect(normaliseMessage(`"a" at /x/y/z.ts took 1.5 ms for 017f22e2-79b0-7cc3-98c4-dc0c0c07398f`)).toBe(
      '<text> at <path> took <n> ms for <id>',
    )
  })
})
