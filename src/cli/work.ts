/** `holdfast work`: load → find the jobs → run a worker for them → stop on a signal → close. */
import type { LogLevel } from '../job/record.ts'
import type { RunningWorker } from '../hub.ts'
import { consoleLogger } from '../telemetry/console-logger.ts'
import type { PinoLike } from '../telemetry/log.ts'
import type { WorkOptions } from '../worker/options.ts'
import { EXIT, type ExitCode } from './exit.ts'
import { findJobs, type FoundJobs } from './find-jobs.ts'
import { hasColours, type Io } from './io.ts'
import { loadModule } from './load-module.ts'
import { StopSignals } from './stop-signals.ts'

export interface WorkFlags {
  readonly queues?: Readonly<Record<string, number>>
  readonly concurrency?: number
  /** These three in milliseconds. */
  readonly drain?: number
  readonly poll?: number
  readonly lease?: number
  readonly log?: 'tidy' | 'json'
  readonly logLevel?: LogLevel
}

const INTERRUPTED = Symbol('interrupted')

export async function work(file: string, flags: WorkFlags, io: Io): Promise<ExitCode> {
  const signals = new StopSignals(io)
  const interrupted = signals.stop.then(() => INTERRUPTED)
  const log = cliLogger(io, flags)
  try {
    const loaded = await Promise.race([loadModule(file, io.cwd), interrupted])
    if (typeof loaded === 'symbol') return EXIT.interrupted
    const found = findJobs(loaded, file)
    attachLog(found, flags, log)
    tellJobs(found, file, log)

    const starting = found.hub.startWorker(workOptions(found, flags))
    const worker = await Promise.race([starting, interrupted]).catch(async (error: unknown) => {
      await found.hub.close().catch(() => undefined)
      throw error
    })
    if (typeof worker === 'symbol') {
      // Not awaited: a store that does not answer would hold up the exit, and there is almost nothing to undo.
      void abandon(found, starting)
      return EXIT.interrupted
    }

    await Promise.race([signals.stop, stoppedByItself(found, worker)])
    await stop(worker, signals, log)
    await found.hub.close()
    return signals.hurried ? EXIT.interrupted : EXIT.ok
  } finally {
    signals.close()
  }
}

function workOptions(
  { jobs }: FoundJobs,
  { queues, concurrency, poll, lease, drain }: WorkFlags,
): WorkOptions {
  return {
    jobs,
    ...(queues !== undefined && { queues }),
    ...(concurrency !== undefined && { concurrency }),
    ...(poll !== undefined && { poll }),
    ...(lease !== undefined && { lease }),
    ...(drain !== undefined && { grace: drain }),
  }
}

/** A stop was requested before the store answered: if the worker still starts, stop it right away. */
async function abandon({ hub }: FoundJobs, starting: Promise<RunningWorker>): Promise<void> {
  const closing = hub.close()
  await starting.then((worker) => worker.stop({ drain: 0 })).catch(() => undefined)
  await closing.catch(() => undefined)
}

async function stop(worker: RunningWorker, signals: StopSignals, log: PinoLike): Promise<void> {
  const { running } = worker.health()
  if (signals.stopping && running > 0)
    log.info({ event: 'cli.stopping', running }, 'running jobs may finish; a second signal aborts them')
  const hurried = signals.hurry.then(() => {
    log.warn({ event: 'cli.hurried' }, 'second signal: running jobs are aborted and released')
    return worker.stop({ drain: 0 })
  })
  await Promise.race([worker.stop(), hurried])
  const stuck = worker.health().running
  if (stuck > 0) log.error({ event: 'cli.stuck', stuck }, `${stuck} handlers ignored their abort signal`)
}

/** A module may stop its own worker, with hf.close() for example. */
function stoppedByItself({ hub }: FoundJobs, worker: RunningWorker): Promise<void> {
  return new Promise((resolve) => {
    hub.core.events.on('worker.stopped', (event) => {
      if (event.worker === worker.id) resolve()
    })
  })
}

function cliLogger({ stderr, clock }: Io, { log, logLevel }: WorkFlags): PinoLike {
  return consoleLogger({
    sink: stderr,
    clock,
    level: logLevel ?? 'info',
    format: log ?? (stderr.isTTY === true ? 'tidy' : 'json'),
    colour: hasColours(stderr),
  })
}

/** Keeps the module's logger, or its choice of none. */
function attachLog({ hub }: FoundJobs, flags: WorkFlags, log: PinoLike): void {
  if (hub.logsByDefault) hub.logByDefault(log)
  else if (flags.log !== undefined || flags.logLevel !== undefined) {
    log.warn(
      { event: 'cli.own_logger' },
      'the module has its own logger: --log and --log-level have no effect on it',
    )
  }
}

function tellJobs({ jobs, contracts }: FoundJobs, file: string, log: PinoLike): void {
  const names = jobs.map((job) => job.name)
  log.info({ event: 'cli.loaded', file, jobs: names }, `loaded ${file}: ${names.join(', ')}`)
  if (contracts.length > 0)
    log.debug({ event: 'cli.contracts', contracts }, `not run here, contracts only: ${contracts.join(', ')}`)
}
