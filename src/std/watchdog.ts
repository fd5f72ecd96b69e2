/** Calls `fn` after `ms`, unless the process has exited: this timer does not keep it alive. */
export function watchdog(ms: number, fn: () => void): void {
  setTimeout(fn, ms).unref()
}
