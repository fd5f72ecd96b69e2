/**
 * Makes `dist/`: one declaration file per module, by tsc, and few JavaScript files, by rolldown. Why few, and how they are
 * cut, is in docs/decisions/0018-bundled-package.md.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, posix, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  rolldown,
  type ChunkingContext,
  type CodeSplittingGroup,
  type OutputChunk,
  type RolldownOptions,
} from 'rolldown'

const root = fileURLToPath(new URL('../', import.meta.url))
const src = `${root}src/`
const dist = `${root}dist/`

/** Each is a program of its own in another thread, so it shares no file with the others and holds only what it runs. */
const THREADS = [
  'stores/postgres/pulse/pulse-thread',
  'stores/redis/pulse/pulse-thread',
  'stores/sqlite/store-thread',
]
/** Read when the program runs. */
const FOLDERS = ['stores/postgres/schema', 'stores/redis/lua', 'stores/sqlite/sql']
const BIN = 'cli/bin'

const COMMON = {
  platform: 'node',
  // A bare name is a package or a builtin: none is bundled.
  external: /^[^./]/,
  tsconfig: false,
  // Node 20 cannot parse `using`.
  transform: { target: 'es2023' },
  // What runs shall read like the sources, and a test rewrites the schema's version in it.
  optimization: { inlineConst: false },
  onLog: (_level, log) => {
    throw new Error(log.message)
  },
} satisfies RolldownOptions

rmSync(dist, { recursive: true, force: true })
const [chunks] = await Promise.all([bundleAll(), declare()])
for (const chunk of chunks) write(chunk)
for (const folder of FOLDERS) cpSync(src + folder, dist + folder, { recursive: true })
chmodSync(`${dist}${BIN}.js`, 0o755)

async function declare(): Promise<void> {
  const tsc = spawn(`${root}node_modules/.bin/tsc`, ['-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  })
  const [code] = (await once(tsc, 'exit')) as [number | null]
  if (code !== 0) process.exit(code ?? 1)
}

async function bundleAll(): Promise<OutputChunk[]> {
  const outputs = await Promise.all([
    bundle(entries(), true),
    ...THREADS.map((name) => bundle([name], false)),
  ])
  return outputs.flat()
}

async function bundle(names: readonly string[], split: boolean): Promise<OutputChunk[]> {
  const build = await rolldown({
    ...COMMON,
    input: Object.fromEntries(names.map((name) => [name, `${src}${name}.ts`])),
    preserveEntrySignatures: 'strict',
  })
  const { output } = await build.generate({
    format: 'esm',
    comments: false,
    // Names in stack traces and in the imports between files are those of the sources.
    minifyInternalExports: false,
    chunkFileNames: ({ name, facadeModuleId }) =>
      facadeModuleId === null ? `${name}.js` : nameOf(facadeModuleId) + '.js',
    codeSplitting: split
      ? { groups: [core(), { name: sharedFile, debugName: 'shared', minShareCount: 2 }] }
      : false,
  })
  await build.close()
  return output.filter((file) => file.type === 'chunk')
}

/** Everything that package.json lets others import or run. */
function entries(): string[] {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    exports: Record<string, string | { default: string }>
  }
  const files = Object.values(exports).flatMap((target) =>
    typeof target === 'string' ? [] : [target.default],
  )
  return [...files.map((file) => file.replace(/^\.\/dist\/(.*)\.js$/, '$1')), BIN]
}

/** All that `holdfast` itself imports: whoever imports another entry has it loaded as well. */
function core(): CodeSplittingGroup {
  let members: ReadonlySet<string> | undefined
  return {
    name: (id, graph) => ((members ??= closureOf(`${src}index.ts`, graph)).has(id) ? 'core' : null),
    debugName: 'core',
    priority: 1,
  }
}

/** The file for any other module that several entries import. */
function sharedFile(id: string): string | null {
  const folder = ['stores/sqlite', 'stores', 'cli'].find((path) => id.startsWith(`${src}${path}/`))
  return folder === undefined ? null : `${folder}/shared`
}

/** A module and all that it imports statically, as far as that is ours. */
function closureOf(id: string, graph: ChunkingContext): ReadonlySet<string> {
  const found = new Set([id])
  for (const at of found) for (const next of graph.getModuleInfo(at)?.importedIds ?? []) found.add(next)
  return found
}

function write({ fileName, code, moduleIds }: OutputChunk): void {
  for (const id of moduleIds) checkPlace(id, fileName)
  mkdirSync(dirname(dist + fileName), { recursive: true })
  writeFileSync(dist + fileName, ascii(code))
}

/** What a module finds by its own place has to be there as well from the file that it is bundled into. */
function checkPlace(id: string, fileName: string): void {
  if (!id.startsWith(src) || !/new URL\([^)]*import\.meta\.url\)/.test(readFileSync(id, 'utf8'))) return
  const [own, bundled] = [nameOf(id), fileName].map((path) => posix.dirname(path))
  if (own !== bundled)
    throw new Error(
      `src/${nameOf(id)}.ts uses import.meta.url, but goes into dist/${fileName}: move it to src/${bundled}.`,
    )
}

/** `stores/index` for `…/src/stores/index.ts`. */
function nameOf(id: string): string {
  return relative(src, id).replaceAll('\\', '/').replace(/\.ts$/, '')
}

/** V8 keeps a whole file at two bytes a character because of one beyond U+00FF, such as an ellipsis in a message. */
function ascii(code: string): string {
  return code.replaceAll(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
