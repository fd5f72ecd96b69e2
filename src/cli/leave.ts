/**
 * The end of the process. It ends by itself once nothing is open any more; what keeps it open after a stop was opened
 * by somebody else, and after a moment it is named and the process ended all the same: a deploy must not hang on a
 * connection pool that nobody closed.
 */
import { watchdog } from '../std/watchdog.ts'
import type { ExitCode } from './exit.ts'
import type { Io } from './io.ts'

const PATIENCE_MS = 1_000
/** What every process has: its standard streams. */
const OURS: ReadonlySet<string> = new Set(['TTYWrap', 'PipeWrap', 'FSReqPromise', 'FSReqCallback'])

export function leave(io: Io, code: ExitCode): void {
  process.exitCode = code
  watchdog(PATIENCE_MS, () => {
    io.stderr.write(`${describeHolders(process.getActiveResourcesInfo())}\n`)
    io.exit(code)
  })
}

export function describeHolders(resources: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const resource of resources)
    if (!OURS.has(resource)) counts.set(resource, (counts.get(resource) ?? 0) + 1)
  const list = [...counts].map(([resource, count]) => `${count} ${resource}`).join(', ')
  return (
    `Ending the process, although something is still open: ${list === '' ? 'a standard stream' : list}.\n` +
    "  hint: Close what your module opens when it is done: hf.on('worker.stopped', () => pool.end())."
  )
}
