/** The recipe "Your own store" of CONTRIBUTING.md, followed to the letter. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { holdfast } from 'holdfast'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import * as published from 'holdfast/store'
import * as suite from 'holdfast/store/conformance'
import { CONTRACT } from '../../src/stores/check-store.ts'
import { ERROR_HINTS } from '../../src/errors.ts'
import { tinyStore } from './tiny-store.ts'

const CONTRACT_WORDS = [...CONTRACT.flatMap((name) => name.split('.')), 'Store', 'HoldfastError', 'skip']

function isErrorCode(name: string): boolean {
  return name in ERROR_HINTS
}

const here = fileURLToPath(new URL('.', import.meta.url))
const recipe = sectionOf(readFileSync(`${here}../../CONTRIBUTING.md`, 'utf8'), '## Your own store')

function sectionOf(text: string, title: string): string {
  const [, section = ''] = text.split(`\n${title}\n`)
  return section.split('\n## ')[0] ?? ''
}

/** Imports as they stand in the sources. */
function importsIn(file: string): string[] {
  return [...readFileSync(here + file, 'utf8').matchAll(/ from '([^']+)'/g)].map(([, from = '']) => from)
}

describe('the recipe for a store of your own', () => {
  test('shows the test file as it is', () => {
    const [shown = ''] = /```ts ignore\n[^]*?```/.exec(recipe) ?? []
    const lines = shown.split('\n').slice(1, -1)
    expect(lines.map((line) => line.slice(3)).join('\n')).toBe(
      readFileSync(`${here}conformance.test.ts`, 'utf8').trim(),
    )
  })

  test('is the example of the suite itself', () => {
    const source = readFileSync(`${here}../../src/stores/conformance/index.ts`, 'utf8')
    const [, shown = ''] = /```ts\n([^]*?) \* ```/.exec(source) ?? []
    expect(shown.replaceAll(/^ \* ?/gm, '').trim()).toBe(
      readFileSync(`${here}conformance.test.ts`, 'utf8').trim(),
    )
  })

  test('takes nothing but what holdfast publishes', () => {
    const files = readdirSync(here).filter((name) => !name.endsWith('.test.ts'))
    expect(files.length).toBeGreaterThan(1)
    for (const file of files)
      for (const from of importsIn(file)) expect(from, file).toMatch(/^(holdfast\/store|\.\/\w[\w-]*\.ts)$/)
  })

  test('names only helpers and codes that there are', () => {
    const helpers = [...recipe.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
    const known = new Set([...Object.keys(published), ...Object.keys(suite), ...CONTRACT_WORDS])
    expect(helpers.filter((name) => !known.has(name) && !isErrorCode(name))).toEqual([])
  })

  test('ends with a job that runs', async () => {
    const store = tinyStore()
    await using hf = holdfast({ store, logger: false })
    const greet = hf.job({ name: 'greet', input: z.string(), run: ({ input }) => `hello ${input}` })
    await hf.work({ poll: 20 })
    const handle = await greet.enqueue('ada')
    expect(await handle.result()).toBe('hello ada')
  })
})
