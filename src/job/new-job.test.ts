import { describe, expect, test } from 'vitest'
import { readDefinition, type RawDefinition } from './definition.ts'
import type { JobId } from './ids.ts'
import { newJob, type NewJobOptions, type Inherited } from './new-job.ts'
import type { NewJob } from './record.ts'
import { DEFAULT_RETRY } from './retry.ts'

const QUEUES = {
  names: ['default', 'mail'],
  agingMs: (queue: string) => (queue === 'mail' ? 1_000 : 60_000),
  keepsDead: () => true,
}
const DEFAULTS = { queues: QUEUES.names, retry: DEFAULT_RETRY, timeoutMs: 300_000, middleware: [] }

interface Given {
  readonly definition?: Partial<RawDefinition>
  readonly inherited?: Inherited
}

function make(options: unknown = {}, { definition, inherited }: Given = {}): NewJob {
  return newJob({
    id: '017f22e2-79b0-7cc3-98c4-dc0c0c07398f' as JobId,
    definition: readDefinition({ name: 'welcome', ...definition }, DEFAULTS),
    input: { to: 'a' },
    payload: '{"to":"a"}',
    options: options as NewJobOptions,
    queues: QUEUES,
    inherited,
  })
}

const badOption = (message: string | RegExp): unknown =>
  expect.objectContaining({
    code: 'HF_BAD_OPTION',
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  })

describe('a new job', () => {
  test('is what its definition says, where the enqueue says nothing', () => {
    expect(make()).toEqual({
      id: '017f22e2-79b0-7cc3-98c4-dc0c0c07398f',
      name: 'welcome',
      queue: 'default',
      payload: '{"to":"a"}',
      priority: 5,
      headStartMs: 300_000,
      maxAttempts: 4,
      maxCrashes: 3,
      group: null,
      limits: [],
      envelope: { correlationId: null, tags: [], metadata: {}, retry: null, timeoutMs: null },
      due: { inMs: 0 },
      unique: null,
    })
  })

  test.each<[string, NewJobOptions, object]>([
    ['a queue, whose aging counts', { queue: 'mail' }, { queue: 'mail', headStartMs: 5_000 }],
    ['a priority', { priority: 'urgent' }, { priority: 9, headStartMs: 540_000 }],
    ['a priority by level', { priority: 0 }, { priority: 0, headStartMs: 0 }],
    ['a delay', { in: '5m' }, { due: { inMs: 300_000 } }],
    ['no delay', { in: 0 }, { due: { inMs: 0 } }],
    ['a time', { at: '2030-01-01T00:00:00Z' }, { due: { atMs: Date.UTC(2030, 0, 1) } }],
    ['a Date', { at: new Date(Date.UTC(2030, 0, 1)) }, { due: { atMs: Date.UTC(2030, 0, 1) } }],
    ['a time in the past, which is now to the store', { at: new Date(0) }, { due: { atMs: 0 } }],
    ['attempts', { retry: { attempts: 9 } }, { maxAttempts: 9, maxCrashes: 3 }],
    ['crashes', { retry: { crashes: 0 } }, { maxAttempts: 4, maxCrashes: 0 }],
  ])('takes %s from the enqueue', (_, options, expected) => {
    expect(make(options)).toMatchObject(expected)
  })

  test.each<[string, NewJobOptions, object]>([
    ['tags', { tags: ['a', 'b'] }, { tags: ['a', 'b'] }],
    ['a timeout', { timeout: '10s' }, { timeoutMs: 10_000 }],
    ['a correlation id', { correlationId: 'c' }, { correlationId: 'c' }],
    ['metadata', { metadata: { tenant: 't' } }, { metadata: { tenant: 't' } }],
    [
      'a policy as it was given',
      { retry: { attempts: 2, delay: '5s' } },
      { retry: { attempts: 2, delay: '5s' } },
    ],
  ])('carries %s in its envelope', (_, options, expected) => {
    const { envelope } = make(options)
    expect(envelope).toMatchObject(expected)
    expect(JSON.parse(JSON.stringify(envelope))).toEqual(envelope)
  })

  test("overrides parts of the definition's policy only", () => {
    const definition = { retry: { attempts: 9, crashes: 1 } }
    expect(make({ retry: { delay: '1s' } }, { definition })).toMatchObject({ maxAttempts: 9, maxCrashes: 1 })
    expect(make({ retry: { attempts: 2 } }, { definition })).toMatchObject({ maxAttempts: 2, maxCrashes: 1 })
  })

  test('keeps nothing that the caller may change afterwards', () => {
    const options = { tags: ['a'], metadata: { k: 'v' }, retry: { attempts: 2 } }
    const { envelope } = make(options)
    options.tags.push('b')
    options.metadata.k = 'changed'
    options.retry.attempts = 5
    expect(envelope).toMatchObject({ tags: ['a'], metadata: { k: 'v' }, retry: { attempts: 2 } })
  })
})

describe('the unique key of a new job', () => {
  const definition: Partial<RawDefinition> = {
    unique: (input: { to: string }) => ({ key: input.to }),
  }

  test('comes from the definition, which is given the raw input', () => {
    expect(make({}, { definition }).unique).toMatchObject({ key: 'welcome a' })
  })

  test('comes from the enqueue where that has one', () => {
    expect(make({ unique: { key: 'own', for: '1m' } }, { definition }).unique).toEqual({
      key: 'welcome own',
      hold: { forMs: 60_000 },
      onConflict: 'ignore',
    })
  })

  test('is refused where it cannot work', () => {
    expect(() => make({ unique: { key: '' } })).toThrow(badOption(/^`enqueue\(\)\.unique\.key`/))
  })
})

describe('a job that a handler enqueues', () => {
  const inherited: Inherited = { correlationId: 'parent', metadata: { tenant: 't', trace: '1' } }

  test("takes over its parent's correlation id and metadata", () => {
    expect(make({}, { inherited }).envelope).toMatchObject(inherited)
  })

  test('may have a correlation id of its own, and metadata on top', () => {
    const { envelope } = make({ correlationId: 'own', metadata: { trace: '2', x: 'y' } }, { inherited })
    expect(envelope.correlationId).toBe('own')
    expect(envelope.metadata).toEqual({ tenant: 't', trace: '2', x: 'y' })
  })

  test("takes over neither tags nor the parent's policy", () => {
    expect(make({}, { inherited }).envelope).toMatchObject({ tags: [], retry: null, timeoutMs: null })
  })

  test('is refused where its metadata and those of its parents grow too large together', () => {
    const large = { correlationId: 'c', metadata: { a: 'x'.repeat(3_900), b: 'x'.repeat(3_900) } }
    expect(() => make({ metadata: { c: 'x'.repeat(3_900) } }, { inherited: large })).toThrow(
      badOption(/^`enqueue\(\)\.metadata` cannot be stored: \$ is too large/),
    )
  })
})

describe('an enqueue', () => {
  test.each<[string, unknown, string | RegExp]>([
    ['an unknown option', { dealy: '5s' }, 'Unknown option `enqueue().dealy`.'],
    ['options that are no object', 5_000, 'The options of `enqueue()` are 5000; they must be an object.'],
    ['options that are null', null, 'The options of `enqueue()` are null; they must be an object.'],
    [
      'both a delay and a time',
      { in: '5m', at: new Date(0) },
      '`enqueue().in` and `enqueue().at` cannot both be given.',
    ],
    ['a delay below zero', { in: -1 }, /^`enqueue\(\)\.in` is -1/],
    [
      'a delay in words',
      { in: 'tomorrow' },
      /^`enqueue\(\)\.in` is "tomorrow"; it must be a duration of 0 or more\.$/,
    ],
    [
      'a time without a zone',
      { at: '2030-01-01T00:00' },
      /^`enqueue\(\)\.at` is "2030-01-01T00:00"; it must be a point in time\.$/,
    ],
    ['a time that is none', { at: new Date(Number.NaN) }, /^`enqueue\(\)\.at` is Invalid Date/],
    ['a time as a number', { at: 1_900_000_000_000 }, /^`enqueue\(\)\.at` is 1900000000000/],
    ['an unknown priority', { priority: 10 }, /^`enqueue\(\)\.priority` is 10/],
    ['no timeout', { timeout: 0 }, /^`enqueue\(\)\.timeout` is 0; it must be a duration above 0\.$/],
    ['no attempts', { retry: { attempts: 0 } }, /^`enqueue\(\)\.retry\.attempts` is 0/],
    ['a misspelt retry', { retry: { atempts: 3 } }, 'Unknown option `enqueue().retry.atempts`.'],
    [
      'a backoff function',
      { retry: { backoff: () => 1 } },
      '`enqueue().retry.backoff` is a function, which cannot be stored with a job.',
    ],
    [
      'a `when` function',
      { retry: { when: () => true } },
      '`enqueue().retry.when` is a function, which cannot be stored with a job.',
    ],
    [
      'tags that are no list',
      { tags: 'a' },
      /^`enqueue\(\)\.tags` is "a"; it must be a list of at most 50\.$/,
    ],
    [
      '51 tags',
      { tags: Array.from({ length: 51 }, String) },
      /^`enqueue\(\)\.tags` is .+; it must be a list of at most 50\.$/,
    ],
    [
      'an empty tag',
      { tags: ['a', ''] },
      /^`enqueue\(\)\.tags\[1\]` is .+; it must be a text of 1 to 200 characters/,
    ],
    ['a tag that is too long', { tags: ['x'.repeat(201)] }, /^`enqueue\(\)\.tags\[0\]`/],
    ['a tag that is no text', { tags: [5] }, /^`enqueue\(\)\.tags\[0\]`/],
    ['a hole among tags', { tags: [, 'a'] }, /^`enqueue\(\)\.tags\[0\]`/], // oxlint-disable-line no-sparse-arrays
    [
      'a NUL in a tag',
      { tags: ['a\0'] },
      /^`enqueue\(\)\.tags\[0\]` is .+; it must be .+ without NUL bytes or broken characters\.$/,
    ],
    [
      'an empty correlation id',
      { correlationId: '' },
      /^`enqueue\(\)\.correlationId` is .+; it must be a text of 1 to 200/,
    ],
    [
      'half a character in a correlation id',
      { correlationId: '\uD83D' },
      /^`enqueue\(\)\.correlationId` is .+; it must be/,
    ],
    [
      'metadata that are no object',
      { metadata: 'x' },
      '`enqueue().metadata` is "x"; it must be an object of texts.',
    ],
    [
      'metadata that are null',
      { metadata: null },
      '`enqueue().metadata` is null; it must be an object of texts.',
    ],
    [
      'metadata that are a list',
      { metadata: ['x'] },
      /^`enqueue\(\)\.metadata` is \[ 'x' \]; it must be an object of texts\.$/,
    ],
    [
      'metadata that are no texts',
      { metadata: { n: 5 } },
      /^`enqueue\(\)\.metadata\.n` is .+; it must be a text of 1 to 4000/,
    ],
    [
      'a text in the metadata that is too long',
      { metadata: { k: 'x'.repeat(4_001) } },
      /^`enqueue\(\)\.metadata\.k` is .+; it must be/,
    ],
    [
      'a NUL in a key of the metadata',
      { metadata: { 'a\0': 'x' } },
      /^`enqueue\(\)\.metadata` cannot be stored: .+ NUL/,
    ],
    [
      'a __proto__ among the metadata',
      { metadata: JSON.parse('{"__proto__":"x"}') },
      /^`enqueue\(\)\.metadata` cannot be stored: .+__proto__/,
    ],
    [
      'more than 8 KiB of metadata',
      { metadata: { a: 'x'.repeat(4_000), b: 'x'.repeat(4_000), c: 'x'.repeat(200) } },
      /^`enqueue\(\)\.metadata` cannot be stored: \$ is too large/,
    ],
  ])('is refused with %s', (_, options, message) => {
    expect(() => make(options)).toThrow(badOption(message))
  })

  test('is refused for a queue that is not declared', () => {
    expect(() => make({ queue: 'post' })).toThrow(expect.objectContaining({ code: 'HF_UNKNOWN_QUEUE' }))
  })

  test('may go up to the limits', () => {
    const options = {
      tags: Array.from({ length: 50 }, () => 'x'.repeat(200)),
      correlationId: 'x'.repeat(200),
      metadata: { a: 'x'.repeat(4_000), b: 'x'.repeat(4_000) },
    }
    expect(make(options).envelope).toMatchObject(options)
  })
})
