import { describe, expect, test } from 'vitest'
import { HoldfastError } from '../errors.ts'
import { fakeIo } from '../../test/support/fake-io.ts'
import { EXIT, exitCodeOf, ModuleMissing } from './exit.ts'
import { describeHolders } from './leave.ts'
import { printError } from './print-error.ts'

function printed(error: unknown, verbose = false): string {
  const io = fakeIo()
  printError(io, error, { verbose })
  expect(io.out()).toBe('')
  return io.err()
}

describe('an error as it is printed', () => {
  test('has message, code and hint, and no stack', () => {
    expect(printed(new HoldfastError('HF_NO_JOBS', 'Nothing here.', { hint: 'Export one.' }))).toBe(
      'error: Nothing here. [HF_NO_JOBS]\n  hint: Export one.\n',
    )
  })

  test('names its causes and the place in the own code, and takes the hint from what went wrong first', () => {
    const cause = new TypeError('x is\n  not a function')
    cause.stack =
      'TypeError: …\n    at node:internal/x:1:2\n    at f (file:///app/node_modules/a/b.js:1:2)\n    at file:///app/jobs.mjs:3:7'
    const inner = new HoldfastError('HF_BAD_JOB', 'Bad job.', { hint: 'Correct it.', cause })
    inner.stack = ''
    const text = printed(new HoldfastError('HF_BAD_MODULE', 'Could not load jobs.mjs.', { cause: inner }))
    expect(text).toBe(
      [
        'error: Could not load jobs.mjs. [HF_BAD_MODULE]',
        '  caused by Bad job. [HF_BAD_JOB]',
        '  caused by TypeError: x is not a function',
        '    at /app/jobs.mjs:3:7',
        '  hint: Correct it.',
        '',
      ].join('\n'),
    )
  })

  test('has its stack where that is asked for', () => {
    expect(printed(new Error('boom'), true)).toMatch(/^error: boom\n\nError: boom\n {4}at /)
  })

  test('may be anything that was thrown', () => {
    for (const thrown of [undefined, null, 'text', 42, {}, Object.create(null)])
      expect(printed(thrown)).toMatch(/^error: ./)
    const loop = new Error('round')
    loop.cause = loop
    expect(printed(loop).split('\n')).toHaveLength(4)
  })

  test('is red on a terminal that has colours', () => {
    const io = fakeIo({ tty: { isTTY: true, hasColors: () => true } })
    printError(io, new Error('boom'), { verbose: false })
    expect(io.err()).toContain('\u001b[31merror:\u001b[0m')
  })
})

describe('an exit code', () => {
  test('says what kind of failure it was', () => {
    expect(exitCodeOf(new Error('boom'))).toBe(EXIT.failed)
    expect(exitCodeOf(new HoldfastError('HF_BAD_MODULE', ''))).toBe(EXIT.failed)
    expect(exitCodeOf(new ModuleMissing(''))).toBe(EXIT.notFound)
    expect(exitCodeOf(new HoldfastError('HF_BAD_OPTION', ''))).toBe(EXIT.usage)
    expect(exitCodeOf(new HoldfastError('HF_STORE_UNREACHABLE', ''))).toBe(EXIT.unreachable)
    expect(exitCodeOf(new HoldfastError('HF_STORE_DENIED', ''))).toBe(EXIT.unreachable)
  })

  test('is the same for an error of another copy of the library', () => {
    expect(exitCodeOf(Object.assign(new Error(''), { code: 'HF_STORE_UNREACHABLE' }))).toBe(EXIT.unreachable)
  })
})

describe('what holds a process', () => {
  test('is counted by kind, without the standard streams', () => {
    expect(describeHolders(['TTYWrap', 'Timeout', 'TCPSocketWrap', 'Timeout'])).toContain(
      '2 Timeout, 1 TCPSocketWrap.',
    )
    expect(describeHolders(['TTYWrap'])).toContain('a standard stream')
  })
})
