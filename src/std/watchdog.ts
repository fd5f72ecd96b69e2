/** Calls `fn` after `ms`, unless the process has ended by itself before: this timer keeps nothing alive. */
export function watchdog(ms: number, fn: () => void): void {
  setTimeout(fn, ms).unref()
}
