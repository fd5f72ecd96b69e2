import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import {
  checkClocks,
  checkImports,
  checkLength,
  checkSleeps,
  importsOf,
  layerOf,
  layers,
  maxLines,
} from './support/architecture.ts'
import { filesIn, packageJson, root } from './support/tree.ts'

/** Path → why the file is exempt. Both should stay empty. */
const mayBeLong: Readonly<Record<string, string>> = {}
const maySleep: Readonly<Record<string, string>> = {}

const sources = filesIn('src', '.ts')
const tests = [...sources, ...filesIn('test', '.ts')].filter(({ path }) => path.endsWith('.test.ts'))

describe('the tree', () => {
  test('imports point up the list of layers only', () => {
    expect(sources.flatMap(checkImports)).toEqual([])
  })

  test('has every layer of the list, and CONTRIBUTING.md shows the same list', () => {
    const there = new Set(sources.map(({ path }) => layerOf(path)))
    expect(layers.filter((layer) => !there.has(layer))).toEqual([])
    const [, shown = ''] =
      /## The tree\n[^`]*`[^`]*`[^`]*```\n([^`]*)```/.exec(readFileSync(`${root}CONTRIBUTING.md`, 'utf8')) ??
      []
    expect(
      shown
        .replaceAll(/\([^)]*\)/g, '')
        .split(/[·\s]+/)
        .filter(Boolean),
    ).toEqual([...layers])
  })

  test('only src/std reads the time', () => {
    expect(sources.flatMap(checkClocks)).toEqual([])
  })

  test(`no file in src is longer than ${maxLines} lines`, () => {
    expect(sources.filter(({ path }) => !(path in mayBeLong)).flatMap(checkLength)).toEqual([])
  })

  test('no test sleeps', () => {
    expect(tests.filter(({ path }) => !(path in maySleep)).flatMap(checkSleeps)).toEqual([])
  })

  test('every exception is still needed', () => {
    const needed = (allowed: object, check: typeof checkLength): string[] =>
      [...sources, ...tests]
        .filter((file) => file.path in allowed && check(file).length > 0)
        .map((f) => f.path)
    expect(new Set(needed(mayBeLong, checkLength))).toEqual(new Set(Object.keys(mayBeLong)))
    expect(new Set(needed(maySleep, checkSleeps))).toEqual(new Set(Object.keys(maySleep)))
  })

  test('the type checker resolves holdfast and its subpaths as the exports map does, to the sources', () => {
    const tsconfig = readFileSync(`${root}tsconfig.json`, 'utf8').replace(/^\s*\/\/.*$/gm, '')
    const expected = Object.entries(packageJson.exports).flatMap(([subpath, target]) =>
      typeof target === 'string' ? [] : [[`holdfast${subpath.slice(1)}`, [sourceOf(target.default)]]],
    )
    expect(JSON.parse(tsconfig).compilerOptions.paths).toEqual(Object.fromEntries(expected))
  })
})

describe('the check of imports', () => {
  const check = (path: string, text: string): string[] => checkImports({ path, text })

  test('knows the layer of a file and of a folder', () => {
    expect(layerOf('src/errors.ts')).toBe('errors')
    expect(layerOf('src/errors.test.ts')).toBe('errors')
    expect(layerOf('src/stores/memory/index.ts')).toBe('stores')
    expect(layerOf('src/index.ts')).toBe('index')
    expect(layerOf('src/utils/lib.ts')).toBeUndefined()
  })

  test('finds every form of import, and none in comments or strings', () => {
    const text = `
      import a from './a.ts'
      import type { B } from './b.ts'
      import './c.ts'
      export { d } from './d.ts'
      export type { E } from './e.ts'
      export * from './f.ts'
      const g = await import('./g.ts')
      type H = import('./h.ts').H
      // import x from './x.ts'
      const y = "import y from './y.ts'"
    `
    expect(importsOf({ path: 'src/a.ts', text }).join()).toBe(
      './a.ts,./b.ts,./c.ts,./d.ts,./e.ts,./f.ts,./g.ts,./h.ts',
    )
  })

  test('lets a layer see itself and what stands above', () => {
    const text =
      "import a from './rank.ts'; import { x } from '../errors.ts'; import type { y } from '../std/json.ts'"
    expect(check('src/job/retry.ts', text)).toEqual([])
    expect(
      check('src/index.ts', "export { x } from './cli/run.ts'; export { y } from './holdfast.ts'"),
    ).toEqual([])
    expect(check('src/cli/work.ts', "import { Hub } from '../hub.ts'")).toEqual([])
  })

  test('names file, import and rule of an import that points down', () => {
    expect(check('src/job/retry.ts', "import type { Store } from '../stores/store.ts'")).toEqual([
      `src/job/retry.ts imports '../stores/store.ts', but imports point up only, and stores stands below job (see "The tree" in CONTRIBUTING.md).`,
    ])
    expect(check('src/manager/a.ts', "import '../cli/bin.ts'")).toHaveLength(1)
    expect(check('src/worker/worker.ts', "export * from '../index.ts'")).toHaveLength(1)
  })

  test('keeps std to builtins and itself', () => {
    expect(check('src/std/ids.ts', "import 'node:crypto'; import './random.ts'")).toEqual([])
    expect(check('src/std/ids.ts', "import '../errors.ts'")).toHaveLength(1)
    expect(check('src/std/ids.ts', "import { nanoid } from 'nanoid'")).toEqual([
      "src/std/ids.ts imports 'nanoid', but std imports nothing but node: builtins and itself.",
    ])
  })

  test('keeps the terminal out of testing', () => {
    expect(
      check('src/testing/index.ts', "import '../holdfast.ts'; import '../stores/memory/index.ts'"),
    ).toEqual([])
    expect(check('src/testing/index.ts', "const x = import('../cli/bin.ts')")).toHaveLength(1)
  })

  test('refuses a missing .ts, our own name, what is not shipped, and a folder that is no layer', () => {
    expect(check('src/job/a.ts', "import './b.js'")).toHaveLength(1)
    expect(check('src/job/a.ts', "import './b'")).toHaveLength(1)
    expect(check('src/job/a.ts', "import 'holdfast/store'")).toHaveLength(1)
    expect(check('src/job/a.ts', "import '../../test/support/x.ts'")).toHaveLength(1)
    expect(check('src/job/a.ts', "import '../utils/b.ts'")).toHaveLength(1)
    expect(check('src/utils/a.ts', '')).toHaveLength(1)
  })

  test('lets a test beside the code use stores, testing and the support of the tests, but no other layer', () => {
    const text =
      "import '../testing/index.ts'; import '../stores/memory/index.ts'; import '../../test/support/x.ts'"
    expect(check('src/job/rank.test.ts', text)).toEqual([])
    expect(check('src/job/rank.test.ts', "import '../worker/worker.ts'")).toHaveLength(1)
  })
})

describe('the check of clocks', () => {
  const check = (path: string, text: string): string[] => checkClocks({ path, text })

  test('finds what reads the time, and where', () => {
    expect(check('src/job/a.ts', '\nconst a = new Date()')).toEqual([
      'src/job/a.ts:2 uses new Date(): take a Clock and ask its now(); only src/std reads the time.',
    ])
    expect(check('src/job/a.ts', 'const a = Date()')).toHaveLength(1)
    expect(check('src/job/a.ts', 'const a = new Date')).toHaveLength(1)
  })

  test('allows dates of a known time, comments, and src/std', () => {
    expect(check('src/job/a.ts', "const a = new Date(0) // new Date()\nconst b = 'new Date()'")).toEqual([])
    expect(check('src/std/clock.ts', 'const a = new Date()')).toEqual([])
  })
})

describe('the check of length', () => {
  test(`allows ${maxLines} lines and no more`, () => {
    const lines = (count: number): string => 'x\n'.repeat(count)
    expect(checkLength({ path: 'src/a.ts', text: lines(maxLines) })).toEqual([])
    expect(checkLength({ path: 'src/a.ts', text: lines(maxLines + 1) })).toHaveLength(1)
  })
})

describe('the check of sleeps', () => {
  const check = (text: string): string[] => checkSleeps({ path: 'test/a.test.ts', text })

  test('finds timers and sleeps of a fixed time', () => {
    expect(check('await new Promise((r) => setTimeout(r, 50))')).toHaveLength(1)
    expect(check('await sleep(50)')).toEqual([
      'test/a.test.ts:1 sleeps for 50 ms: await the event, or advance a virtual clock.',
    ])
    expect(check('await systemClock.sleep(50)')).toHaveLength(1)
    expect(check("import { setTimeout as wait } from 'node:timers/promises'")).toHaveLength(1)
  })

  test('finds what polls', () => {
    for (const call of ['vi.waitFor', 'vi.waitUntil', 'expect.poll'])
      expect(check(`await ${call}(() => isDone())`)).toEqual([
        `test/a.test.ts:1 calls ${call}: await the event, or advance a virtual clock.`,
      ])
  })

  test('allows a virtual clock', () => {
    expect(check('const woken = clock.sleep(50); clock.advance(50); await woken')).toEqual([])
  })
})

function sourceOf(built: string): string {
  return built.replace('./dist/', './src/').replace(/\.js$/, '.ts')
}
