/** Runs the tests that must notice a mutant of the worker on a copy of the sources that has it. */
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { withMutant } from '../../simulation/mutants/hunt.ts'
import type { WorkerMutant } from './mutants.ts'

const TIMEOUT_MS = 100_000

/** The title of the first test that failed, or null if all passed. */
export function huntByTests(mutant: WorkerMutant): Promise<string | null> {
  return withMutant(mutant, ['test/support', 'test/simulation', 'test/checker'], (copy) =>
    firstFailure(copy, mutant.caughtBy),
  )
}

function firstFailure(copy: string, file: string): Promise<string | null> {
  // One of its own: that of the project starts servers.
  const test = { include: [file], exclude: [], env: { HOLDFAST_STORE: 'memory:' }, testTimeout: 30_000 }
  const config = { root: copy, oxc: { target: 'es2023' }, test }
  writeFileSync(join(copy, 'vitest.config.ts'), `export default ${JSON.stringify(config)}\n`)
  const vitest = join(copy, 'node_modules/vitest/vitest.mjs')
  return new Promise((resolve, reject) => {
    execFile(
      process.execPath,
      [vitest, 'run', '--reporter=json', '--bail=1'],
      { cwd: copy, timeout: TIMEOUT_MS, maxBuffer: 64e6 },
      (error, stdout, stderr) => {
        const failed = failedTitle(stdout)
        if (failed !== undefined) resolve(failed)
        else if (error === null) resolve(null)
        else reject(new Error(`${file} could not be run: ${stderr.slice(0, 2_000)}`, { cause: error }))
      },
    )
  })
}

interface JsonReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[]
  }[]
}

/** Undefined if no test failed, for example because the file could not be loaded. */
function failedTitle(stdout: string): string | undefined {
  const begin = stdout.indexOf('{')
  if (begin === -1) return undefined
  const { testResults } = JSON.parse(stdout.slice(begin)) as JsonReport
  return testResults.flatMap((file) => file.assertionResults).find(({ status }) => status === 'failed')
    ?.fullName
}
