import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { relativeLinks, tsBlocks } from './support/markdown.ts'
import { filesIn, root } from './support/tree.ts'

const atRoot = readdirSync(root)
  .filter((name) => name.endsWith('.md'))
  .map((path) => ({ path, text: readFileSync(root + path, 'utf8') }))
const documents = [...atRoot, ...['docs', 'examples', 'bench'].flatMap(markdownIn)]

describe('the documentation', () => {
  test('has only ts blocks that compile', { timeout: 60_000 }, () => {
    const files = documents
      .filter(({ path }) => path === 'README.md' || path.startsWith('docs/'))
      .flatMap(({ path, text }) =>
        tsBlocks(text).map((block) => ({ name: `${path}.L${block.line}.ts`, ...block })),
      )
    expect(compile(files)).toBe('')
  })

  test('links only to files that exist', () => {
    const broken = documents.flatMap(({ path, text }) =>
      relativeLinks(text)
        .filter((target) => !existsSync(join(root, target.startsWith('/') ? '.' : dirname(path), target)))
        .map((target) => `${path} → ${target}`),
    )
    expect(broken).toEqual([])
  })
})

describe('the reader of markdown', () => {
  const text = [
    '# Title with [a link](docs/a.md#part), ![an image](b.png "title") and [a site](https://example.org)',
    '```ts',
    "const link = '[not](a-link.md)'",
    '```',
    '- in a list',
    '  ```ts',
    '  const indented = 1',
    '  ```',
    '```ts ignore',
    'does not compile',
    '```',
    '````md',
    '```ts',
    'quoted',
    '```',
    '````',
    '[name]: ../c.md',
  ].join('\n')

  test('takes ts blocks with their lines, and leaves out the ignored and the quoted', () => {
    expect(tsBlocks(text)).toEqual([
      { line: 3, code: "const link = '[not](a-link.md)'" },
      { line: 7, code: 'const indented = 1' },
    ])
  })

  test('takes relative links outside of code', () => {
    expect(relativeLinks(text)).toEqual(['docs/a.md', 'b.png', '../c.md'])
  })

  test('compiles a block that is right and reports one that is wrong, at its line in the document', () => {
    const block = { name: 'planted.md.L3.ts', line: 3 }
    expect(compile([{ ...block, code: 'const one: number = 1\nconsole.log(one)' }])).toBe('')
    expect(compile([{ ...block, code: "\nexport const one: number = 'x'" }])).toContain('planted.md.L3.ts(4,')
  })
})

/** Type-checks each block as its own module under the project's settings. Returns the output of tsc. */
function compile(files: readonly { name: string; line: number; code: string }[]): string {
  if (files.length === 0) return ''
  const folder = join(root, 'node_modules/.cache/docs')
  rmSync(folder, { recursive: true, force: true })
  for (const { name, line, code } of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    // Blank lines before the block make tsc report the line in the document.
    writeFileSync(join(folder, name), `${'\n'.repeat(line - 1)}${code}\nexport {}\n`)
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: '../../../tsconfig.json',
      // A snippet may have unused declarations.
      compilerOptions: { rootDir: root, noUnusedLocals: false, noUnusedParameters: false },
      files: files.map(({ name }) => name),
      include: [],
    }),
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout, stderr } = spawnSync(process.execPath, [tsc, '-p', folder, '--pretty', 'false'], {
    encoding: 'utf8',
  })
  return stdout + stderr
}

function markdownIn(folder: string): ReturnType<typeof filesIn> {
  return filesIn(folder, '.md').filter(({ path }) => !path.includes('node_modules/'))
}
