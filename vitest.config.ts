import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { SummaryReporter } from './test/support/summary-reporter.ts'

const CORES = availableParallelism()
const root = fileURLToPath(new URL('.', import.meta.url))

// `holdfast` and its subpaths mean the sources here, read off the exports map so that there is one list.
function selfAliases(): { find: RegExp; replacement: string }[] {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    exports: Record<string, string | { default: string }>
  }
  return Object.entries(exports).flatMap(([subpath, target]) => {
    if (typeof target === 'string') return []
    const source = target.default.replace('./dist/', 'src/').replace(/\.js$/, '.ts')
    return [{ find: new RegExp(`^holdfast${subpath.slice(1)}$`), replacement: root + source }]
  })
}

/** Each installs a schema, or starts a thread or a process of its own. */
const SLOW_MUTANTS = ['postgres', 'sqlite', 'sqlite-code', 'worker'].map(
  (name) => `test/mutants/${name}.test.ts`,
)

/** It takes a compiler to install, so it is a package apart: tests that use it are left out without it. */
const LIBRARIES = `${root}test/libraries/node_modules/`
const hasBetterSqlite = existsSync(`${LIBRARIES}better-sqlite3/build`) && existsSync(`${LIBRARIES}libsql`)
const NEED_BETTER_SQLITE = ['test/transactions/sqlite*.test.ts']
/** Every test of the contract, for each library, and the model. */
const ALL_OF_THE_CONTRACT = [
  'src/stores/sqlite/caller/*.conformance.test.ts',
  'test/model/sqlite-caller.model.test.ts',
]
if (!hasBetterSqlite)
  console.warn(
    'better-sqlite3 or libsql is not there: their tests are skipped (npm ci --prefix test/libraries installs it).',
  )

function libraryAliases(): { find: RegExp; replacement: string }[] {
  return ['better-sqlite3', 'drizzle-orm/better-sqlite3'].map((name) => ({
    find: new RegExp(`^${name}$`),
    replacement: LIBRARIES + name,
  }))
}

/** It counts the listeners of its process, and the simulation leaves killed workers behind in theirs. */
const NEEDS_A_PROCESS = 'src/worker/unhandled.test.ts'

export default defineConfig({
  resolve: { alias: [...selfAliases(), ...libraryAliases()] },
  // Node 20 cannot parse `using`: lower it in tests as tsc does in the build.
  oxc: { target: 'es2023' },
  test: {
    // What names no store: tests leave nothing behind on the disk.
    env: { HOLDFAST_STORE: 'memory:' },
    // Many tests wait for servers and leases: one worker more than there are cores uses that time.
    maxWorkers: CORES + 1,
    allowOnly: !process.env['CI'],
    reporters: ['default', new SummaryReporter()],
    // Far beyond what any takes: a loaded machine is no failure.
    testTimeout: 30_000,
    hookTimeout: 10_000,
    globalSetup: ['test/support/servers/global-setup.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [
            'test/faults/**',
            ...SLOW_MUTANTS,
            NEEDS_A_PROCESS,
            ...ALL_OF_THE_CONTRACT,
            ...(hasBetterSqlite ? [] : NEED_BETTER_SQLITE),
          ],
          // A process for each file would spend a fifth of the time on loading the same modules.
          isolate: false,
          // Concurrent tests spend their time waiting: the largest such file has ten.
          maxConcurrency: 10,
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: [NEEDS_A_PROCESS] },
      },
      {
        extends: true,
        test: {
          name: 'faults',
          include: [
            'test/faults/**/*.test.ts',
            ...SLOW_MUTANTS,
            ...(hasBetterSqlite ? ALL_OF_THE_CONTRACT : []),
          ],
          // Kills and freezes wait for leases to run out, in processes of their own, which need the cores.
          maxWorkers: Math.max(2, CORES),
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
})
