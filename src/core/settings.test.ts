import { describe, expect, test } from 'vitest'
import { memoryStore } from '../stores/memory/index.ts'
import { readOptions } from '../job/options.ts'
import { CLIENT_FIELDS, settingsFrom, type HoldfastSettings } from './settings.ts'

const DAY_MS = 86_400_000

const read = (options: unknown = {}, env: Record<string, string> = {}): HoldfastSettings =>
  settingsFrom(readOptions(options, 'holdfast()', CLIENT_FIELDS), env)

const badOption = (message: string | RegExp): unknown =>
  expect.objectContaining({
    code: 'HF_BAD_OPTION',
    message: typeof message === 'string' ? message : expect.stringMatching(message),
    hint: expect.stringMatching(/^[A-Z].+\.$/),
  })

describe('the settings of holdfast()', () => {
  test('are those of the design where nothing is said', () => {
    const settings = read()
    expect(settings).toMatchObject({
      store: 'file:.holdfast',
      retention: {
        completedMs: DAY_MS,
        deadMs: 30 * DAY_MS,
        cancelledMs: DAY_MS,
        maxCompleted: null,
        maxDead: null,
        maxCancelled: null,
      },
      retry: { attempts: 4, delayMs: 1_000, factor: 2, maxDelayMs: 300_000, jitter: 0.5 },
      jobTimeoutMs: 300_000,
      timeoutMs: 10_000,
    })
    expect(settings.queues.names).toEqual(['default'])
    expect(settings.queues.agingMs('default')).toBe(60_000)
  })

  test('follow the code, then the environment, then the default', () => {
    expect(read({ store: 'memory:' }, { HOLDFAST_STORE: 'elsewhere:' }).store).toBe('memory:')
    expect(read({}, { HOLDFAST_STORE: 'elsewhere:' }).store).toBe('elsewhere:')
    expect(read({}, {}).store).toBe('file:.holdfast')
  })

  test.each([
    ['0', 1],
    ['3', 4],
    ['9', 10],
  ])('make of JOB_MAX_RETRIES=%s %d attempts', (retries, attempts) => {
    expect(read({}, { JOB_MAX_RETRIES: retries }).retry.attempts).toBe(attempts)
  })

  test('hand on the environment, and refuse one that cannot work', () => {
    expect(read({}, { WORKER_CONCURRENCY: '7' }).env.concurrency).toBe(7)
    expect(() => read({}, { WORKER_CONCURRENCY: 'many' })).toThrow(badOption(/WORKER_CONCURRENCY/))
  })

  test('take a store of your own as it is', () => {
    const store = memoryStore()
    expect(read({ store }).store).toBe(store)
  })
})

describe('the queues', () => {
  test('are those declared, in order, each with its aging', () => {
    const { queues } = read({ queues: { mail: {}, slow: { aging: '10m' }, now: { aging: 'strict' } } })
    expect(queues.names).toEqual(['mail', 'slow', 'now'])
    expect(queues.names.map((name) => queues.agingMs(name))).toEqual([60_000, 600_000, 10 * 365 * DAY_MS])
  })

  test.each(['mail', 'a.b:c/d@e-f_g', '9', '日本', 'x'.repeat(100)])('may be called %s', (name) => {
    expect(read({ queues: { [name]: {} } }).queues.names).toEqual([name])
  })

  test.each<[string, unknown, string | RegExp]>([
    ['an empty name', { '': {} }, '"" is not a queue name.'],
    ['a name with a space', { 'a b': {} }, '"a b" is not a queue name.'],
    ['a name that begins with a dash', { '-a': {} }, '"-a" is not a queue name.'],
    ['a name that is too long', { ['x'.repeat(101)]: {} }, /is not a queue name\.$/],
    ['none at all', {}, '`holdfast().queues` is empty.'],
    ['a list', ['mail'], "`holdfast().queues` is [ 'mail' ]; it must be an object."],
    ['null as options', { mail: null }, '`holdfast().queues.mail` is null; it must be an object.'],
    ['an unknown option', { mail: { agin: '1m' } }, 'Unknown option `holdfast().queues.mail.agin`.'],
    [
      'an aging of zero',
      { mail: { aging: 0 } },
      '`holdfast().queues.mail.aging` is 0; it must be a duration above 0.',
    ],
    [
      'an aging in words',
      { mail: { aging: 'slow' } },
      '`holdfast().queues.mail.aging` is "slow"; it must be a duration above 0.',
    ],
  ])('are refused with %s', (_, queues, message) => {
    expect(() => read({ queues })).toThrow(badOption(message))
  })
})

describe('what is kept of finished jobs', () => {
  test('is what is said, and by default for what is not', () => {
    expect(read({ keep: { completed: '2h', dead: 0, maxDead: 10, maxCompleted: 0 } }).retention).toEqual({
      completedMs: 7_200_000,
      deadMs: 0,
      cancelledMs: DAY_MS,
      maxCompleted: 0,
      maxDead: 10,
      maxCancelled: null,
    })
  })

  test.each<[string, unknown, RegExp]>([
    ['an unknown option', { failed: '1d' }, /^Unknown option `holdfast\(\)\.keep\.failed`\.$/],
    ['no object', '1d', /^`holdfast\(\)\.keep` is "1d"; it must be an object\.$/],
    [
      'a time in words',
      { completed: 'a day' },
      /^`holdfast\(\)\.keep\.completed` is "a day"; it must be a duration of 0 or more\.$/,
    ],
    ['a time below zero', { dead: -1 }, /^`holdfast\(\)\.keep\.dead` is -1/],
    ['an endless time', { cancelled: Infinity }, /^`holdfast\(\)\.keep\.cancelled` is Infinity/],
    [
      'a count below zero',
      { maxDead: -1 },
      /^`holdfast\(\)\.keep\.maxDead` is -1; it must be a whole number from 0/,
    ],
    ['half a count', { maxCompleted: 1.5 }, /^`holdfast\(\)\.keep\.maxCompleted` is 1\.5/],
    ['an endless count', { maxCancelled: Infinity }, /^`holdfast\(\)\.keep\.maxCancelled` is Infinity/],
  ])('is refused with %s', (_, keep, message) => {
    expect(() => read({ keep })).toThrow(badOption(message))
  })
})

describe('the timeout of calls to the store', () => {
  test.each([
    ['30s', 30_000],
    ['5m', 300_000],
    [1, 1],
  ])('may be %s', (timeout, timeoutMs) => {
    expect(read({ timeout }).timeoutMs).toBe(timeoutMs)
  })

  test.each<[unknown, RegExp]>([
    // A store remembers flush ids for ten minutes: a client must have given up long before.
    ['301s', /^`holdfast\(\)\.timeout` is "301s"; it must be a duration above 0 to 5m\.$/],
    [0, /^`holdfast\(\)\.timeout` is 0; it must be a duration above 0 to 5m\.$/],
    ['fast', /^`holdfast\(\)\.timeout` is "fast"; it must be a duration above 0 to 5m\.$/],
    [null, /^`holdfast\(\)\.timeout` is null; it must be a duration above 0 to 5m\.$/],
  ])('cannot be %o', (timeout, message) => {
    expect(() => read({ timeout })).toThrow(badOption(message))
  })
})
