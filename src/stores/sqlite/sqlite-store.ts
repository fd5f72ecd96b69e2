/**
 * The embedded store: an SQLite database in a directory of its own, which the processes of one host share. A thread of each
 * process owns its connection, so that neither a transaction nor the disk holds up the event loop.
 */
import { systemClock } from '../../std/clock.ts'
import { Pulses } from '../pulse/pulse.ts'
import type { Store, WakeUp } from '../store.ts'
import { checkSettles } from '../settle-check.ts'
import type { Durability } from './open-database.ts'
import { ThreadLink } from './thread/link.ts'
import type { ThreadData } from './thread/protocol.ts'
import { PulsePort } from './thread/pulse-port.ts'

export interface SqliteStoreOptions {
  /** Where the data lives; made if it is not there. @default '.holdfast' */
  readonly directory?: string
  /**
   * `full`: nothing acknowledged is lost, whatever happens. `normal`: a power cut or a crash of the operating system can take
   * back what was acknowledged since the last checkpoint; a crash of a process takes back nothing. @default 'full'
   */
  readonly durability?: Durability
  /** Told in one line what does not work as well as it could. @default a warning of the process */
  readonly onNotice?: (line: string) => void
}

export function sqliteStore(options: SqliteStoreOptions = {}): Store {
  const { directory = '.holdfast', durability = 'full' } = options
  const onNotice = options.onNotice ?? ((line: string) => process.emitWarning(line, 'HoldfastWarning'))
  return storeOnThread({ directory, durability, clock: null, maxLook: null, sql: null }, onNotice)
}

/** The store on a thread that is started like this: for tests that set its clock. */
export function storeOnThread(data: ThreadData, onNotice: (line: string) => void): Store {
  const listeners = new Set<(hint: WakeUp) => void>()
  const link = new ThreadLink(data, onNotice, (hint) => {
    for (const listener of listeners) tell(listener, hint)
  })
  const pulses = new Pulses({ thread: () => new PulsePort(link), clock: systemClock, onNotice })
  return {
    kind: 'embedded',
    open: () => link.open(),
    async close() {
      await pulses.close()
      await link.close()
      listeners.clear()
    },
    keepAlive: (worker, leaseMs) => pulses.keepAlive(worker, leaseMs),
    enqueue: (flush) => link.call('enqueue', flush),
    register: (worker, leaseMs, atOnce) => link.call('register', worker, leaseMs, atOnce ?? null),
    retire: (worker) => link.call('retire', worker),
    async cycle(request) {
      checkSettles(request.settle)
      return link.call('cycle', request)
    },
    heartbeat: (request) => link.call('heartbeat', request),
    report: (worker, reports) => link.call('report', worker, reports),
    async subscribe(listener) {
      await link.listen(true)
      // A wrapper of its own: one function subscribed twice is two subscriptions.
      const own: typeof listener = (hint) => listener(hint)
      listeners.add(own)
      return async () => {
        if (listeners.delete(own) && listeners.size === 0) await link.listen(false).catch(() => undefined)
      }
    },
    upkeep: {
      promote: (limit) => link.call('promote', limit),
      rescue: (limit) => link.call('rescue', limit),
      prune: (retention, limit) => link.call('prune', retention, limit),
      lead: (candidate, ttlMs) => link.call('lead', candidate, ttlMs),
      resign: (candidate) => link.call('resign', candidate),
    },
    schedules: {
      put: (schedule) => link.call('putSchedule', schedule),
      remove: (id) => link.call('removeSchedule', id),
      list: () => link.call('listSchedules'),
      fire: (id, slot, nextSlot, job) => link.call('fire', id, slot, nextSlot, job),
    },
    notes: {
      put: (kind, id, text, ttlMs) => link.call('putNote', kind, id, text, ttlMs),
      remove: (kind, id) => link.call('removeNote', kind, id),
      list: (kind) => link.call('listNotes', kind),
    },
    admin: {
      get: (id) => link.call('get', id),
      list: (query) => link.call('list', query),
      queues: () => link.call('queues'),
      setPaused: (queue, paused) => link.call('setPaused', queue, paused),
      cancel: (id, reason) => link.call('cancel', id, reason),
      change: (filter, action, limit, after) => link.call('change', filter, action, limit, after),
      edit: (id, edit) => link.call('edit', id, edit),
      deadGroups: (filter, limit, after) => link.call('deadGroups', filter, limit, after),
    },
  }
}

/** What a listener throws is its own affair. */
function tell(listener: (hint: WakeUp) => void, hint: WakeUp): void {
  try {
    listener(hint)
  } catch {
    // A hint is best effort, and the step it tells of has happened.
  }
}
