import { type } from 'arktype'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  DEFAULT_TIMEOUT_MS,
  readDefinition,
  readJobName,
  readQueue,
  type DefinitionDefaults,
  type RawDefinition,
} from './definition.ts'
import { DEFAULT_RETRY } from './retry.ts'

const DEFAULTS: DefinitionDefaults = {
  queues: ['mail', 'default'],
  retry: DEFAULT_RETRY,
  timeoutMs: DEFAULT_TIMEOUT_MS,
  middleware: [],
}

const read = (raw: object, defaults = DEFAULTS) => readDefinition(raw as RawDefinition, defaults)

describe('a job definition', () => {
  test('needs only a name; the rest is as the design says', () => {
    expect(read({ name: 'mail' })).toEqual({
      name: 'mail',
      schema: undefined,
      output: undefined,
      queue: 'default',
      priority: 5,
      retry: DEFAULT_RETRY,
      timeoutMs: 300_000,
      unique: undefined,
      run: undefined,
      middleware: [],
    })
  })

  test('takes what it is given', () => {
    const run = (): void => undefined
    const unique = (): { key: string } => ({ key: 'k' })
    const input = z.object({ to: z.string() })
    const output = z.number()
    const raw = {
      name: 'mail',
      input,
      output,
      queue: 'mail',
      priority: 'high',
      retry: { attempts: 9 },
      timeout: '10s',
      unique,
      run,
    }
    expect(read(raw)).toEqual({
      name: 'mail',
      schema: input,
      output,
      queue: 'mail',
      priority: 7,
      retry: { ...DEFAULT_RETRY, attempts: 9 },
      timeoutMs: 10_000,
      unique,
      run,
      middleware: [],
    })
  })

  test('fills its blanks from the defaults, which the environment may have set', () => {
    const retry = { ...DEFAULT_RETRY, attempts: 8 }
    const middleware = [() => Promise.resolve(undefined)]
    const definition = read(
      { name: 'mail', retry: { delay: '2s' } },
      { ...DEFAULTS, retry, middleware, timeoutMs: 7 },
    )
    expect(definition).toMatchObject({ retry: { attempts: 8, delayMs: 2_000 }, timeoutMs: 7, middleware })
  })

  test('goes to the first queue where none is called default', () => {
    expect(read({ name: 'mail' }, { ...DEFAULTS, queues: ['b', 'a'] }).queue).toBe('b')
  })

  test('cannot be changed any more', () => {
    expect(Object.isFrozen(read({ name: 'mail' }))).toBe(true)
  })

  test.each([
    ['zod', z.string()],
    ['valibot', v.string()],
    ['arktype, whose schemas are functions', type('string')],
  ])('takes a schema of %s', (_, input) => {
    expect(read({ name: 'mail', input }).schema).toBe(input)
  })

  test.each<[string, object, code: string, RegExp]>([
    [
      'an unknown option',
      { concurency: 5 },
      'HF_BAD_JOB',
      /^Job "mail": Unknown option `job\(\)\.concurency`\.$/,
    ],
    [
      'an unknown queue',
      { queue: 'post' },
      'HF_UNKNOWN_QUEUE',
      /^Job "mail": There is no queue named "post"\.$/,
    ],
    [
      'a queue that is no text',
      { queue: 5n },
      'HF_UNKNOWN_QUEUE',
      /^Job "mail": There is no queue named 5n\.$/,
    ],
    [
      'an unknown priority',
      { priority: 'asap' },
      'HF_BAD_OPTION',
      /^Job "mail": `job\(\)\.priority` is "asap"/,
    ],
    [
      'no timeout',
      { timeout: 0 },
      'HF_BAD_OPTION',
      /^Job "mail": `job\(\)\.timeout` is 0; it must be a duration above 0\.$/,
    ],
    [
      'a timeout below zero',
      { timeout: -5 },
      'HF_BAD_OPTION',
      /^Job "mail": `job\(\)\.timeout` is -5; it must be a duration above 0\.$/,
    ],
    [
      'an endless timeout',
      { timeout: Infinity },
      'HF_BAD_OPTION',
      /^Job "mail": `job\(\)\.timeout` is Infinity; it must be a duration above 0\.$/,
    ],
    [
      'a timeout in words',
      { timeout: '5 minutes' },
      'HF_BAD_OPTION',
      /^Job "mail": `job\(\)\.timeout` is "5 minutes"/,
    ],
    [
      'no attempts',
      { retry: { attempts: 0 } },
      'HF_BAD_OPTION',
      /^Job "mail": `job\(\)\.retry\.attempts` is 0; it must be a whole number from 1 to 32767\.$/,
    ],
    [
      'a misspelt retry',
      { retry: { atempts: 1 } },
      'HF_BAD_OPTION',
      /^Job "mail": Unknown option `job\(\)\.retry\.atempts`\.$/,
    ],
    [
      'an input that is no schema',
      { input: { to: 'string' } },
      'HF_BAD_JOB',
      /^Job "mail": `job\(\)\.input` is not a schema\.$/,
    ],
    [
      'an input that is null',
      { input: null },
      'HF_BAD_JOB',
      /^Job "mail": `job\(\)\.input` is not a schema\.$/,
    ],
    [
      'an output that is no schema',
      { output: String },
      'HF_BAD_JOB',
      /^Job "mail": `job\(\)\.output` is not a schema\.$/,
    ],
    [
      'a handler that is no function',
      { run: 'send' },
      'HF_BAD_JOB',
      /^Job "mail": `job\(\)\.run` is .+; it must be a function\.$/,
    ],
    [
      'a handler that is null',
      { run: null },
      'HF_BAD_JOB',
      /^Job "mail": `job\(\)\.run` is .+; it must be a function\.$/,
    ],
    [
      'a unique that is no function',
      { unique: { key: 'k' } },
      'HF_BAD_JOB',
      /^Job "mail": `job\(\)\.unique` is .+; it must be a function\.$/,
    ],
  ])('is refused with %s, naming the job', (_, options, code, message) => {
    expect(() => read({ name: 'mail', ...options })).toThrow(
      expect.objectContaining({
        code,
        message: expect.stringMatching(message),
        hint: expect.stringMatching(/^[A-Z].+\.$/),
      }),
    )
  })

  test.each<[unknown]>([[null], ['mail'], [undefined]])('cannot be %o', (raw) => {
    expect(() => read(raw as object)).toThrow(
      expect.objectContaining({
        code: 'HF_BAD_JOB',
        message: expect.stringMatching(
          /^The options of `job\(\)` are .+; they must be an object\.$/,
        ) as string,
      }),
    )
  })
})

describe("a job's name", () => {
  test.each([
    'a',
    'send-welcome',
    'billing/charge.card:v2@eu',
    '_x',
    '日本語',
    'Ünïcode',
    '9lives',
    'x'.repeat(200),
  ])('may be %s', (name) => {
    expect(readJobName(name)).toBe(name)
  })

  test.each<[unknown, string]>([
    ['', '""'],
    ['a b', '"a b"'],
    [' a', '" a"'],
    ['a\n', '"a\\n"'],
    ['a\u00A0b', '"a\u00A0b"'],
    ['-a', '"-a"'],
    ['.a', '".a"'],
    ['a\0', '"a\uFFFD"'],
    ['a?b', '"a?b"'],
    ['a"b', '"a\\"b"'],
    ['x'.repeat(201), `"${'x'.repeat(99)}…"`],
    [5, '5'],
    [5n, '5n'],
    [undefined, 'undefined'],
    [{}, '{}'],
  ])('cannot be %o', (name, shown) => {
    const refused = expect.objectContaining({
      code: 'HF_BAD_JOB',
      message: `${shown} is not a job name.`,
      hint: expect.stringContaining('1 to 200 letters'),
    })
    expect(() => readJobName(name)).toThrow(refused)
    expect(() => read({ name })).toThrow(refused)
  })
})

describe('a queue by name', () => {
  test('is one of those declared; the hint lists them', () => {
    expect(readQueue('mail', ['mail', 'default'])).toBe('mail')
    expect(() => readQueue('post', ['mail', 'default'])).toThrow(
      expect.objectContaining({
        code: 'HF_UNKNOWN_QUEUE',
        hint: 'Declare it in holdfast({ queues: { … } }), or use one of: mail, default.',
      }),
    )
  })
})
