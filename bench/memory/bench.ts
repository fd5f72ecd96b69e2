/** The worker and the rules on the in-memory store: what Holdfast itself costs, with no server in the way. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { row, type Row } from '../report.ts'
import type { DrainResult, RefillResult, Scenario } from './child.ts'

const run = promisify(execFile)
const CHILD = fileURLToPath(new URL('child.ts', import.meta.url))

export interface BenchOptions {
  readonly rounds: number
  readonly seconds: number
  readonly say: (text: string) => void
}

export async function memoryBench({ rounds, seconds, say }: BenchOptions): Promise<Row[]> {
  const drain: DrainResult[] = []
  const drainSignal: DrainResult[] = []
  const drainOne: DrainResult[] = []
  const few: RefillResult[] = []
  const many: RefillResult[] = []
  for (let round = 1; round <= rounds; round++) {
    say(`round ${round} of ${rounds}`)
    drain.push(await child<DrainResult>({ type: 'drain', jobs: 1_000_000, concurrency: 100, signal: false }))
    drainSignal.push(
      await child<DrainResult>({ type: 'drain', jobs: 300_000, concurrency: 100, signal: true }),
    )
    drainOne.push(await child<DrainResult>({ type: 'drain', jobs: 500_000, concurrency: 1, signal: false }))
    few.push(await child<RefillResult>({ type: 'refill', waiting: 10_000, seconds }))
    many.push(await child<RefillResult>({ type: 'refill', waiting: 1_000_000, seconds }))
  }
  const ratios = few.map((side, index) => (many[index]?.cpuMicros ?? Number.NaN) / side.cpuMicros)
  return [
    row('drain no-op jobs, 100 slots', 'jobs/s', rates(drain), {
      text: '≥ 150,000 jobs/s',
      met: (rate) => rate >= 150_000,
    }),
    row('drain, each handler reads its signal', 'jobs/s', rates(drainSignal)),
    row('drain, 1 slot', 'jobs/s', rates(drainOne)),
    row(
      'bulk enqueue',
      'jobs/s',
      drain.map((one) => one.enqueuePerSecond),
    ),
    row(
      'CPU a job, 10 k waiting',
      'µs',
      few.map((one) => one.cpuMicros),
    ),
    row(
      'CPU a job, 1 M waiting',
      'µs',
      many.map((one) => one.cpuMicros),
    ),
    row('CPU a job, 1 M vs 10 k waiting', '×', ratios, { text: '≤ 1.15 ×', met: (ratio) => ratio <= 1.15 }),
  ]
}

function rates(results: readonly DrainResult[]): number[] {
  return results.map((one) => one.drainPerSecond)
}

/** A fresh process for each figure: no heap and no optimised code left over from the one before. */
async function child<Result>(scenario: Scenario): Promise<Result> {
  const { stdout } = await run(process.execPath, ['--import', 'tsx', CHILD, JSON.stringify(scenario)], {
    timeout: 300_000,
  })
  return JSON.parse(stdout) as Result
}
