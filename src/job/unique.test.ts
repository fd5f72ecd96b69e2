import { describe, expect, test } from 'vitest'
import { readUnique, type Unique, type UniqueClaim } from './unique.ts'

describe('a unique key', () => {
  test.each<[string, Unique, UniqueClaim]>([
    [
      'by default until the job is final, leaving the holder alone',
      { key: 'k' },
      { key: 'mail k', hold: { while: 'unfinished' }, onConflict: 'ignore' },
    ],
    [
      'while it waits to be claimed',
      { key: 'k', while: 'ready' },
      { key: 'mail k', hold: { while: 'ready' }, onConflict: 'ignore' },
    ],
    [
      'until it is final',
      { key: 'k', while: 'unfinished', onConflict: 'replace' },
      { key: 'mail k', hold: { while: 'unfinished' }, onConflict: 'replace' },
    ],
    [
      'for a time',
      { key: 'k', for: '10m', onConflict: 'reschedule' },
      { key: 'mail k', hold: { forMs: 600_000 }, onConflict: 'reschedule' },
    ],
  ])('is held %s', (_, unique, claim) => {
    expect(readUnique('mail', unique)).toEqual(claim)
  })

  test('is apart for each job, and cannot be read in two ways', () => {
    const key = (job: string, text: string): string => readUnique(job, { key: text }).key
    expect(key('a', 'x')).not.toBe(key('b', 'x'))
    // Job names hold no white space, so the first space is always the border.
    expect(key('a', 'b x')).toBe('a b x')
    expect(key('mail', ' x ')).toBe('mail  x ')
  })

  test('may be up to 512 characters of anything that can be stored', () => {
    expect(readUnique('mail', { key: 'ä😀\n\u001F' }).key).toBe('mail ä😀\n\u001F')
    expect(readUnique('mail', { key: 'k'.repeat(512) }).key).toHaveLength(517)
  })

  test.each<[string, unknown, RegExp]>([
    ['no object', 'k', /^The options of `unique\(\)` are "k"; they must be an object\.$/],
    ['null', null, /^The options of `unique\(\)` are null; they must be an object\.$/],
    ['an unknown option', { key: 'k', ttl: 5 }, /^Unknown option `unique\(\)\.ttl`\.$/],
    ['no key', {}, /^`unique\(\)\.key` is undefined; it must be a text of 1 to 512 characters/],
    ['an empty key', { key: '' }, /^`unique\(\)\.key` is .+; it must be a text/],
    ['a key that is no text', { key: 5 }, /^`unique\(\)\.key` is .+; it must be a text/],
    ['a key that is too long', { key: 'k'.repeat(513) }, /^`unique\(\)\.key` is .+; it must be a text/],
    [
      'a NUL in the key',
      { key: 'a\0b' },
      /^`unique\(\)\.key` is .+; it must be .+ without NUL bytes or broken characters\.$/,
    ],
    [
      'half a character in the key',
      { key: 'a\uD83D' },
      /^`unique\(\)\.key` is .+; it must be .+ without NUL bytes or broken characters\.$/,
    ],
    [
      'an unknown way out of a conflict',
      { key: 'k', onConflict: 'merge' },
      /^`unique\(\)\.onConflict` is "merge"; it must be one of 'ignore', 'replace', 'reschedule'\.$/,
    ],
    [
      'a conflict of no kind',
      { key: 'k', onConflict: 5n },
      /^`unique\(\)\.onConflict` is 5n; it must be one of 'ignore', 'replace', 'reschedule'\.$/,
    ],
    [
      'an unknown state',
      { key: 'k', while: 'running' },
      /^`unique\(\)\.while` is "running"; it must be one of 'ready', 'unfinished'\.$/,
    ],
    [
      'both `for` and `while`',
      { key: 'k', for: '1m', while: 'ready' },
      /^`unique\(\)\.for` and `unique\(\)\.while` cannot both be given\.$/,
    ],
    ['no time', { key: 'k', for: 0 }, /^`unique\(\)\.for` is 0; it must be a duration above 0\.$/],
    [
      'a time in words',
      { key: 'k', for: '10 minutes' },
      /^`unique\(\)\.for` is "10 minutes"; it must be a duration above 0\.$/,
    ],
  ])('is refused with %s', (_, unique, message) => {
    expect(() => readUnique('mail', unique as Unique)).toThrow(
      expect.objectContaining({
        code: 'HF_BAD_OPTION',
        message: expect.stringMatching(message),
        hint: expect.stringMatching(/^(Use|Options:) .+\.$/),
      }),
    )
  })
})
