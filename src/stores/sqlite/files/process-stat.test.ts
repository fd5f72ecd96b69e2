import { describe, expect, test } from 'vitest'
import { parseProcessStat, readProcessStat } from './process-stat.ts'

/** The fields after the name; the start time is the 22nd of all. */
const rest = 'S 10952 10952 9817 0 -1 4194304 2627 0 1 0 11 1 0 0 39 19 7 0 251026 748597248 11454'

describe('the text of /proc/<pid>/stat', () => {
  test.each(['node', 'my app', 'a) R 1 (b', ')', '', '((('])('is read behind the name %j', (name) => {
    expect(parseProcessStat(`10955 (${name}) ${rest}\n`)).toEqual({ name, state: 'S', startTime: 251026 })
  })

  test.each(['', '1 (node', '1 (node)', '1 (node) S 1 2 3', `1 (node) ${rest.replace('251026', 'x')}`])(
    'is refused if it is %j',
    (text) => {
      expect(parseProcessStat(text)).toBeNull()
    },
  )
})

describe.runIf(process.platform === 'linux')('the state of a process', () => {
  test('is there for this one', () => {
    expect(readProcessStat(process.pid)).toMatchObject({ state: expect.stringMatching(/^[RSD]$/) })
  })

  test('is missing for a pid that nobody has', () => {
    expect(readProcessStat(2 ** 30)).toBe('missing')
  })
})
