/** The methods of the contract as steps by name, wherever those run. */
import { checkSettles } from '../settles.ts'
import type { Store } from '../store.ts'
import type { StepAnswer, StepArgs, StepName } from './engine/steps.ts'

export type CallStep = <Name extends StepName>(
  name: Name,
  ...args: StepArgs<Name>
) => Promise<StepAnswer<Name>>

type Methods = Pick<
  Store,
  'enqueue' | 'register' | 'retire' | 'cycle' | 'heartbeat' | 'upkeep' | 'schedules' | 'notes' | 'admin'
>

/** `maxLook`: maximum number of jobs that a list looks at in one step, if not the engine's own. */
export function storeMethods(call: CallStep, maxLook?: number): Methods {
  const look: [] | [number] = maxLook === undefined ? [] : [maxLook]
  return {
    enqueue: (flush) => call('enqueue', flush),
    register: (worker, leaseMs, atOnce) => call('register', worker, leaseMs, atOnce ?? null),
    retire: (worker) => call('retire', worker),
    async cycle(request) {
      checkSettles(request.settle)
      return call('cycle', request)
    },
    heartbeat: (request) => call('heartbeat', request),
    upkeep: {
      promote: (limit) => call('promote', limit),
      rescue: (limit) => call('rescue', limit),
      prune: (retention, limit) => call('prune', retention, limit),
      lead: (candidate, ttlMs) => call('lead', candidate, ttlMs),
    },
    schedules: {
      put: (id, schedule) => call('putSchedule', id, schedule),
      list: () => call('listSchedules'),
      fire: (id, tick, nextTick, job) => call('fire', id, tick, nextTick, job),
    },
    notes: {
      put: (kind, id, text, ttlMs) => call('putNote', kind, id, text, ttlMs),
      list: (kind) => call('listNotes', kind),
    },
    admin: {
      get: (id) => call('get', id),
      list: (query) => call('list', query, ...look),
      queues: () => call('queues'),
      setPaused: (queue, paused) => call('setPaused', queue, paused),
      change: (filter, change, limit, after) => call('change', filter, change, limit, after, ...look),
      deadGroups: (filter, limit, after) => call('deadGroups', filter, limit, after, ...look),
    },
  }
}
