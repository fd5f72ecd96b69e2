/**
 * Milliseconds of a clock that all threads of this process share; only grows. `performance.now()` starts from zero in
 * each thread, and the `timeOrigin` to correct that comes from the wall clock: if that is set while the process runs, a
 * thread that starts later is off by as much.
 */
export function threadMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
