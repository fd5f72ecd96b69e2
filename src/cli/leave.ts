/**
 * Ends the process. It exits by itself once nothing is open any more. If user code left something open, the process
 * names it after a moment and exits anyway: a deploy must not hang on a connection pool that was never closed.
 */
import { watchdog } from '../std/watchdog.ts'
import type { ExitCode } from './exit.ts'
import type { Io } from './io.ts'

const PATIENCE_MS = 1_000
/** Every process has these: its standard streams. */
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
    `Exiting although something is still open: ${list === '' ? 'a standard stream' : list}.\n` +
    "  hint: Close what your module opens when it is done: hf.on('worker.stopped', () => pool.end())."
  )
}
