/**
 * Looks at what `npm publish` would send: fails if it outgrew the sizeBudget of package.json, or holds what
 * nobody who installs it can use (tests, build state, source maps whose sources stay behind).
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Packed {
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string; readonly size: number }[]
}

const root = fileURLToPath(new URL('../', import.meta.url))
const read = (path: string): string => readFileSync(root + path, 'utf8')

const { sizeBudget: budget } = JSON.parse(read('package.json')) as {
  sizeBudget: { packedKB: number; unpackedKB: number }
}
const packed = pack()
const paths = new Set(packed.files.map(({ path }) => path))

const problems = [
  ...overBudget('packed', packed.size, budget.packedKB),
  ...overBudget('unpacked', packed.unpackedSize, budget.unpackedKB),
  ...[...paths].flatMap(strays),
  ...[...paths].flatMap(mapsToNowhere),
]

console.log(
  `${packed.files.length} files, ${kB(packed.size)} of ${budget.packedKB} kB packed, ` +
    `${kB(packed.unpackedSize)} of ${budget.unpackedKB} kB unpacked`,
)
for (const problem of problems) console.error(`✗ ${problem}`)
process.exitCode = problems.length > 0 ? 1 : 0

function pack(): Packed {
  const out = execFileSync('npm', ['pack', '--json', '--dry-run', '--ignore-scripts'], {
    cwd: root,
    encoding: 'utf8',
  })
  const [only] = JSON.parse(out) as Packed[]
  if (only === undefined) throw new Error(`npm pack described no package: ${out}`)
  return only
}

function overBudget(what: string, bytes: number, limitKB: number): string[] {
  if (bytes <= limitKB * 1000) return []
  const largest = packed.files.toSorted((a, b) => b.size - a.size).slice(0, 5)
  return [
    `${what} size ${kB(bytes)} kB is over its budget of ${limitKB} kB. ` +
      `Largest: ${largest.map(({ path, size }) => `${path} ${kB(size)} kB`).join(', ')}`,
  ]
}

function strays(path: string): string[] {
  const isStray = /(\.|-)(test|spec)(-d)?\.|(^|\/)(test|tests|__tests__)\/|\.tsbuildinfo$|(?<!\.d)\.ts$/.test(
    path,
  )
  return isStray ? [`${path} must not be published`] : []
}

function mapsToNowhere(path: string): string[] {
  const folder = posix.dirname(path)
  if (path.endsWith('.map')) {
    const map = JSON.parse(read(path)) as { sources: string[]; sourcesContent?: unknown[] }
    const lost = map.sources.filter((source) => !paths.has(posix.join(folder, source)))
    return map.sourcesContent || lost.length === 0
      ? []
      : [`${path} maps to ${lost.join(', ')}, not in the package`]
  }
  if (!/\.(js|d\.ts)$/.test(path)) return []
  const map = /^\/\/# sourceMappingURL=(?!data:)(\S+)\s*$/m.exec(read(path))?.[1]
  return map === undefined || paths.has(posix.join(folder, map))
    ? []
    : [`${path} names ${map}, not in the package`]
}

function kB(bytes: number): string {
  return (bytes / 1000).toFixed(1)
}
