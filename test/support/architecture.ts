/**
 * The borders of the code base as pure functions over sources, so that test/architecture.test.ts can hold the
 * real tree to them and also show that each of them catches a planted violation.
 */
import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'

export interface Source {
  /** Relative to the repository, with forward slashes: `src/job/rank.ts`. */
  readonly path: string
  readonly text: string
}

/** Imports point up this list only: a layer sees itself and what stands above it. */
export const layers = [
  'std',
  'errors',
  'job',
  'stores',
  'scheduler',
  'core',
  'client',
  'worker',
  'maintenance',
  'manager',
  'manual',
  'flow',
  'telemetry',
  'hub',
  'holdfast',
  'cli',
  'testing',
  'index',
] as const

export type Layer = (typeof layers)[number]

/** What the order alone would allow, and we do not. */
const NO_CLIENT = {
  layers: ['client'],
  why: 'what runs jobs needs nothing of what enqueues them; what both need is in core/',
} as const

const forbidden: Partial<Record<Layer, { readonly layers: readonly Layer[]; readonly why: string }>> = {
  worker: NO_CLIENT,
  maintenance: NO_CLIENT,
  manager: NO_CLIENT,
  testing: {
    layers: ['cli'],
    why: 'users load testing/ in their tests, without a terminal',
  },
}

/** What a test beside the code may reach for although it stands below: doubles, and a store to run on. */
const alsoForTests: readonly Layer[] = ['stores', 'testing']

export const maxLines = 400

/** `src/job/rank.ts` → job, `src/errors.ts` → errors; undefined where no layer of that name exists. */
export function layerOf(path: string): Layer | undefined {
  const name = path.split('/')[1]?.replace(/(\.test)?\.ts$/, '')
  return layers.find((layer) => layer === name)
}

export function checkImports(source: Source): string[] {
  const from = layerOf(source.path)
  if (from === undefined) {
    return [
      `${source.path} is in no layer. Add its folder to the list in test/support/architecture.ts, in order.`,
    ]
  }
  return importsOf(source).flatMap((specifier) => {
    const rule = brokenRule(source.path, from, specifier)
    return rule === undefined ? [] : [`${source.path} imports '${specifier}', but ${rule}.`]
  })
}

function brokenRule(path: string, from: Layer, specifier: string): string | undefined {
  const isTest = path.endsWith('.test.ts')
  if (!specifier.startsWith('.')) return isTest ? undefined : brokenPackageRule(from, specifier)
  if (!specifier.endsWith('.ts')) return 'a relative import ends in .ts, which the build rewrites'

  const target = posix.join(posix.dirname(path), specifier)
  if (!target.startsWith('src/')) return isTest ? undefined : 'nothing outside src/ is shipped'

  const to = layerOf(target)
  if (to === undefined) return `${target} is in no layer`
  if (isTest && alsoForTests.includes(to)) return undefined
  const ban = forbidden[from]
  if (ban?.layers.includes(to)) return `${from} must not import ${to}: ${ban.why}`
  if (layers.indexOf(to) > layers.indexOf(from)) {
    return `imports point up only, and ${to} stands below ${from} (see "The tree" in CONTRIBUTING.md)`
  }
  return undefined
}

function brokenPackageRule(from: Layer, specifier: string): string | undefined {
  if (specifier === 'holdfast' || specifier.startsWith('holdfast/')) return 'src/ names its own files by path'
  if (from === 'std' && !isBuiltin(specifier)) return 'std imports nothing but node: builtins and itself'
  return undefined
}

/** Clocks that the linter's restricted-* rules cannot name; the rest of the list stands in .oxlintrc.json. */
export function checkClocks(source: Source): string[] {
  if (layerOf(source.path) === 'std') return []
  const found: string[] = []
  const report = (offset: number, what: string): void => {
    found.push(
      `${at(source, offset)} uses ${what}: take a Clock and ask its now(); only src/std reads the time.`,
    )
  }
  visit(source, {
    NewExpression(node) {
      if (isNamed(node.callee, 'Date') && node.arguments.length === 0) report(node.start, 'new Date()')
    },
    CallExpression(node) {
      if (isNamed(node.callee, 'Date')) report(node.start, 'Date()')
    },
  })
  return found
}

export function checkLength(source: Source): string[] {
  const lines = source.text.replace(/\n$/, '').split('\n').length
  return lines > maxLines
    ? [`${source.path} has ${lines} lines, more than ${maxLines}: one duty a file.`]
    : []
}

const POLLERS: ReadonlySet<string> = new Set(['vi.waitFor', 'vi.waitUntil', 'expect.poll'])

/**
 * A test awaits a fact or advances a virtual clock. `clock.sleep(1000)` passes, since a test's clock is virtual; the
 * system's clock, a bare sleep(1000) and every setTimeout do not. Nor do vitest's pollers: what a listener hears is
 * awaited with `Signal`, and what only another process knows with `until` or `eventually`.
 */
export function checkSleeps(source: Source): string[] {
  const found: string[] = []
  const report = (offset: number, what: string): void => {
    found.push(`${at(source, offset)} ${what}: await the event, or advance a virtual clock.`)
  }
  for (const specifier of importsOf(source)) {
    if (/^(node:)?timers(\/promises)?$/.test(specifier)) report(0, `imports '${specifier}'`)
  }
  visit(source, {
    CallExpression({ callee, arguments: [first], start }) {
      const [name, object] =
        callee.type === 'MemberExpression' && callee.property.type === 'Identifier'
          ? [callee.property.name, callee.object]
          : [callee.type === 'Identifier' ? callee.name : '', undefined]
      if (name === 'setTimeout') report(start, 'calls setTimeout')
      if (object?.type === 'Identifier' && POLLERS.has(`${object.name}.${name}`))
        report(start, `calls ${object.name}.${name}`)
      if (name !== 'sleep' || first?.type !== 'Literal' || typeof first.value !== 'number') return
      const isRealClock = object?.type === 'Identifier' && /system|real/i.test(object.name)
      if (object === undefined || isRealClock) report(start, `sleeps for ${first.value} ms`)
    },
  })
  return found
}

/** Every module that a source names: static and dynamic imports, re-exports, and types by `import('…')`. */
export function importsOf(source: Source): string[] {
  const found: string[] = []
  const add = (node: { readonly type: string; readonly value?: unknown } | null): void => {
    if (typeof node?.value === 'string') found.push(node.value)
  }
  visit(source, {
    ImportDeclaration: (node) => add(node.source),
    ExportNamedDeclaration: (node) => add(node.source),
    ExportAllDeclaration: (node) => add(node.source),
    ImportExpression: (node) => add(node.source),
    TSImportType: (node) => add(node.source),
  })
  return found
}

function visit(source: Source, visitor: ConstructorParameters<typeof Visitor>[0]): void {
  const { program, errors } = parseSync(source.path, source.text)
  const [error] = errors
  if (error !== undefined) throw new Error(`${source.path} does not parse: ${error.message}`)
  new Visitor(visitor).visit(program)
}

function isNamed(node: { readonly type: string; readonly name?: unknown }, name: string): boolean {
  return node.type === 'Identifier' && node.name === name
}

function at(source: Source, offset: number): string {
  return `${source.path}:${source.text.slice(0, offset).split('\n').length}`
}
