import { describe, expect, test } from 'vitest'
import { bar, cut, styled, left, render, right, sparkline } from './styled-text.ts'

describe('a line', () => {
  test('is cut by what is seen, not by what colours cost', () => {
    const line = [styled('abc', 'bad'), styled('defgh', 'good')]
    expect(render(line, { columns: 6, colour: false })).toBe('abcde…')
    expect(render(line, { columns: 6, colour: true })).toBe('\u001b[31mabc\u001b[0m\u001b[32mde…\u001b[0m')
    expect(render(line, { columns: 3, colour: false })).toBe('abc')
  })

  test('has no control characters of others, which would move the cursor', () => {
    expect(cut('a\nb\u001b[2Jc', 80)).toBe('a b [2Jc')
  })

  test('counts a letter outside the basic plane as one', () => {
    expect(cut('🙂🙂🙂', 2)).toBe('🙂…')
  })

  test('is padded to a column', () => {
    expect([left('ab', 4), right('ab', 4), left('abcdef', 4), right('abcdef', 0)]).toEqual([
      'ab  ',
      '  ab',
      'abc…',
      '',
    ])
  })
})

describe('a sparkline', () => {
  test('shows the newest on the right, each against the highest', () => {
    expect(sparkline([0, 5, 10], 5)).toBe('  ▁▅█')
    expect(sparkline([1, 2, 3, 4], 2)).toBe('▆█')
  })

  test('is flat where nothing happens, and empty where there is no room', () => {
    expect(sparkline([0, 0], 2)).toBe('▁▁')
    expect(sparkline([1, 2], 0)).toBe('')
  })
})

test('a bar is never longer or shorter than its width', () => {
  for (const share of [-1, 0, 0.5, 1, 2]) {
    const { done, left: rest } = bar(share, 10)
    expect(done.length + rest.length).toBe(10)
  }
})
