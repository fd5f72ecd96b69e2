import { Worker as Thread } from 'node:worker_threads'
import type { PulseParts } from '../pulse/pulse.ts'
import { isSource, startFromSources, threadOptions } from '../pulse/thread.ts'
import { FIXED } from './line.ts'
import type { RedisPulse } from './pulse/pulse-link.ts'

/**
 * Options of ioredis that cannot be copied into a thread (functions, a Connector of one's own) leave a store without
 * one, which it says. Those that we fix anyway do not count: a `retryStrategy` is in many people's options.
 */
export function redisThread(pulse: RedisPulse): PulseParts['thread'] {
  const copied: RedisPulse = { ...pulse, connection: { ...pulse.connection, ...FIXED } }
  return () => {
    const options = threadOptions(copied)
    if (isSource(import.meta.url))
      return startFromSources('./pulse/pulse-thread.ts', import.meta.url, options)
    // Bundlers recognise exactly this form and include the file.
    return new Thread(new URL('./pulse/pulse-thread.js', import.meta.url), options)
  }
}
