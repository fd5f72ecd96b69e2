/**
 * Milliseconds by a clock that all threads of this process read alike; only grows. `performance.now()` begins anew in
 * each thread, and the `timeOrigin` to put that right is a wall clock's: if it is set while the process runs, a thread
 * that starts later is off by as much.
 */
export function threadMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
