/** Empties a backlog by one or more processes. */
import type { Child } from './children.ts'
import type { DrainFigure, Figures } from './figures.ts'
import { SMALL_BYTES, type ChildConfig, type Mark, type Work, type WorkResult } from './protocol.ts'
import type { Stage } from './stage.ts'

export interface Drained {
  readonly perSecond: number
  /** CPU a job. */
  readonly serverMicros: number
  readonly clientMicros: number
  /** Written to the server's log a job. */
  readonly logBytes: number
  /** Part of the jobs that the process with the fewest of them ran. */
  readonly leastShare: number
}

export interface DrainOptions {
  readonly jobs: number
  readonly processes?: number
  readonly config?: Partial<ChildConfig>
  readonly work?: Work
}

/** From the start of the workers to the start of the last handler: the stopping is nobody's throughput. */
export async function drain(stage: Stage, options: DrainOptions): Promise<Drained> {
  const { jobs, processes = 1, config = {}, work = {} } = options
  const workers = await Promise.all(Array.from({ length: processes }, () => stage.child(config)))
  const before = await usage(stage, workers)
  await Promise.all(workers.map((worker) => worker.call('startWork', work)))
  await stage.started(workers, jobs)
  const after = await usage(stage, workers)
  const results = await Promise.all(workers.map((worker) => worker.call('stopWork')))
  checkCount(results, jobs)
  return {
    perSecond: rateOf(results, jobs),
    serverMicros: (after.serverMicros - before.serverMicros) / jobs,
    clientMicros: (after.clientMicros - before.clientMicros) / jobs,
    logBytes: (after.logBytes - before.logBytes) / jobs,
    leastShare: Math.min(...results.map(({ started }) => started)) / jobs,
  }
}

/** The figures of a drain, under the name of its scenario. */
export function drainFigures<Name extends string>(name: Name, drained: Drained): Figures<DrainFigure<Name>> {
  return {
    [name]: drained.perSecond,
    [`${name}Server`]: drained.serverMicros,
    [`${name}Client`]: drained.clientMicros,
    [`${name}Log`]: drained.logBytes,
  } as Figures<DrainFigure<Name>>
}

/** Enqueues them in a process that is gone afterwards, and lets the server come to rest. */
export async function fill(
  stage: Stage,
  jobs: number,
  options: { readonly bytes?: number; readonly config?: Partial<ChildConfig> } = {},
): Promise<void> {
  const producer = await stage.child(options.config)
  await producer.call('enqueueMany', { jobs, bytes: options.bytes ?? SMALL_BYTES })
  // An embedded store would be recovered by the next process that opens it.
  await producer.call('close')
  await producer.dispose()
  await stage.server.calmDown(stage.url)
}

export interface Usage {
  readonly serverMicros: number
  readonly clientMicros: number
  readonly logBytes: number
  readonly marks: readonly Mark[]
}

export async function usage(stage: Stage, children: readonly Child[]): Promise<Usage> {
  const marks = await Promise.all(children.map((child) => child.call('mark')))
  const clientMicros = marks.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0)
  const logBytes = await stage.server.loggedBytes()
  return { serverMicros: stage.server.cpuMicros(), clientMicros, logBytes, marks }
}

/** Each job once: a bench that loses or doubles jobs measures something else. */
export function checkCount(results: readonly WorkResult[], jobs: number): void {
  const started = results.reduce((sum, one) => sum + one.started, 0)
  if (started !== jobs)
    throw new Error(`${jobs} jobs were enqueued, but handlers were started ${started} times.`)
}

export function rateOf(results: readonly WorkResult[], jobs: number): number {
  const ran = results.filter(({ started }) => started > 0)
  const beganMs = Math.min(...results.map((one) => one.beganMs))
  const lastMs = Math.max(...ran.map((one) => one.lastMs))
  return jobs / ((lastMs - beganMs) / 1_000)
}
