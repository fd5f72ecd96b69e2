import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { ERROR_HINTS } from '../src/errors.ts'
import { filesIn, root } from './support/tree.ts'

const codes = Object.keys(ERROR_HINTS)
const rows = rowsOf(readFileSync(`${root}docs/errors.md`, 'utf8'))

describe('the table of errors in docs/errors.md', () => {
  test('has every code once, in the order of src/errors.ts, and no other', () => {
    expect(rows.map(([code]) => code)).toEqual(codes)
  })

  test.each(rows)('says of %s when it is raised and what to do', (_code, when, whatToDo) => {
    expect(when).toMatch(/^.{20,}\.$/)
    expect(whatToDo).toMatch(/^.{5,}\.$/)
  })

  test('is about codes that the sources raise', () => {
    // The table of hints names each code without quotes, so it does not count.
    const sources = filesIn('src', '.ts').filter(({ path }) => !path.endsWith('.test.ts'))
    const text = sources.map((source) => source.text).join('\n')
    expect(codes.filter((code) => !text.includes(`'${code}'`))).toEqual([])
  })

  test('is about all codes that any document mentions', () => {
    const documents = [...filesIn('docs', '.md'), ...filesIn('examples', '.md')]
    const texts = [readFileSync(`${root}README.md`, 'utf8'), ...documents.map(({ text }) => text)]
    const mentioned = new Set(texts.flatMap((text) => text.match(/\bHF_[A-Z_]+\b/g) ?? []))
    expect([...mentioned].filter((code) => !codes.includes(code))).toEqual([])
  })
})

describe('the reader of the table', () => {
  test('takes the rows that begin with a code', () => {
    const text = '| code | when | do |\n| --- | --- | --- |\n| `HF_A` | It is `a \\| b`. | Do. |\nHF_B\n'
    expect(rowsOf(text)).toEqual([['HF_A', 'It is `a \\| b`.', 'Do.']])
  })
})

function rowsOf(markdown: string): [code: string, when: string, whatToDo: string][] {
  return [...markdown.matchAll(/^\| `(\w+)` \| (.+?) \| ((?:[^|\\]|\\.)+) \|$/gm)].map(
    ([, code = '', when = '', whatToDo = '']) => [code, when, whatToDo],
  )
}
