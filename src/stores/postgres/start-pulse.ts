import { Worker as Thread } from 'node:worker_threads'
import type { PulseParts } from '../pulse/pulse.ts'
import { isSource, startFromSources, threadOptions } from '../pulse/thread.ts'
import { render, type Names } from './names.ts'
import type { PostgresPulse } from './pulse/pulse-link.ts'

const RENEW = `update holdfast.worker set expires_at = holdfast.now_ms() + lease_ms where id = $1::uuid returning id`

/** A user's pool without a connection string has no thread. */
export function postgresThread(connectionString: string | null, names: Names): PulseParts['thread'] {
  if (connectionString === null)
    return { missing: 'a lent pool without a `url` beside it has no connection for it' }
  const pulse: PostgresPulse = { connectionString, renew: render(RENEW, names) }
  return () => {
    const options = threadOptions(pulse)
    if (isSource(import.meta.url))
      return startFromSources('./pulse/pulse-thread.ts', import.meta.url, options)
    // Bundlers recognise exactly this form and include the file.
    return new Thread(new URL('./pulse/pulse-thread.js', import.meta.url), options)
  }
}
