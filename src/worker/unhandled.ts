/**
 * A rejected promise that a handler leaves behind would end the process. It fails the handler's job instead. Node deals
 * with rejections from elsewhere as usual.
 */
import { currentJob } from '../core/current-job.ts'

let watchers = 0

/** Starts watching; returns how to stop. The process has one listener, however many workers there are. */
export function watchUnhandledRejections(): () => void {
  if (watchers++ === 0) process.on('unhandledRejection', onUnhandled)
  let stopped = false
  return () => {
    if (stopped) return
    stopped = true
    if (--watchers === 0) process.off('unhandledRejection', onUnhandled)
  }
}

function onUnhandled(reason: unknown): void {
  const job = currentJob.getStore()
  if (job !== undefined) {
    job.unhandled(reason)
    return
  }
  // Our listener alone would swallow what Node turns into an uncaught exception.
  if (process.listenerCount('unhandledRejection') > 1) return
  process.nextTick(() => {
    throw reason
  })
}
