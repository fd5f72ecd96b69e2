/** What is done to the fleet on purpose while a run is not yet healed: each kind of fault at its own random pace. */
import type { Fleet } from './fleet.ts'
import { CALM, type Network } from './network.ts'
import type { FaultKind, RunPlan } from './plan.ts'
import type { Recorder } from './recorder.ts'
import { between, pick, type World } from './world.ts'
import type { Store } from '../../src/stores/store.ts'

export interface WeatherParts {
  readonly world: World
  readonly plan: RunPlan
  readonly store: Store
  readonly network: Network
  readonly recorder: Recorder
  readonly fleet: Fleet
}

export function startWeather(parts: WeatherParts): void {
  const { world, plan, network, recorder } = parts
  network.faults = plan.network
  recorder.write({ type: 'phase', phase: 'faulty' })
  for (const kind of Object.keys(plan.every) as FaultKind[]) repeat(parts, kind)
  world.plan(plan.healedFromMs, null, () => {
    network.faults = CALM
    recorder.write({ type: 'phase', phase: 'healed' })
  })
}

function repeat(parts: WeatherParts, kind: FaultKind): void {
  const { world, plan } = parts
  const meanMs = plan.every[kind]
  if (meanMs === Infinity) return
  world.plan(meanMs * 2 * world.random.float(), null, () => {
    if (world.nowMs >= plan.healedFromMs) return
    strike(parts, kind)
    repeat(parts, kind)
  })
}

function strike(parts: WeatherParts, kind: FaultKind): void {
  const { world, plan, fleet } = parts
  const { random } = world
  // Whatever begins before the healing must also end before it.
  const leftMs = plan.healedFromMs - world.nowMs
  const lasting = (low: number, high: number): number => Math.min(between(random, low, high), leftMs)
  const victim = fleet.victim()
  switch (kind) {
    case 'freeze':
      if (victim !== undefined) fleet.freeze(victim, lasting(0.5 * plan.leaseMs, 4 * plan.leaseMs), 'freeze')
      return
    case 'block':
      if (victim !== undefined) fleet.freeze(victim, lasting(50, plan.leaseMs), 'blocked loop')
      return
    case 'kill':
      if (victim !== undefined) fleet.kill(victim, lasting(100, 2 * plan.leaseMs))
      return
    case 'restart':
      if (victim !== undefined) fleet.restart(victim)
      return
    case 'outage':
      return outage(parts, lasting(200, 3 * plan.leaseMs))
    case 'cut-off':
      return cutOff(parts, lasting(200, 3 * plan.leaseMs))
    case 'pause':
      return pauseQueue(parts, lasting(500, 30_000))
  }
}

function outage({ world, network, recorder }: WeatherParts, forMs: number): void {
  if (network.storeAway !== 'no') return
  network.storeAway = pick(world.random, ['refuses', 'silent'] as const)
  recorder.write({ type: 'fault', kind: 'outage' })
  recorder.write({ type: 'store', what: 'down' })
  world.plan(forMs, null, () => {
    network.storeAway = 'no'
    recorder.write({ type: 'store', what: 'up' })
  })
}

function cutOff({ world, network, recorder, fleet }: WeatherParts, forMs: number): void {
  const process = fleet.victim()
  if (process === undefined || network.cutOff.has(process)) return
  network.cutOff.add(process)
  recorder.write({ type: 'fault', kind: 'cut off', node: process.name })
  recorder.write({ type: 'store', what: 'down', node: process.name })
  world.plan(forMs, null, () => {
    network.cutOff.delete(process)
    recorder.write({ type: 'store', what: 'up', node: process.name })
  })
}

function pauseQueue({ world, plan, store, recorder }: WeatherParts, forMs: number): void {
  const queue = pick(world.random, plan.queues)
  const set = (paused: boolean): void => {
    const kind = paused ? ('pause' as const) : ('resume' as const)
    const op = recorder.nextOp()
    recorder.write({ type: 'invoke', op, node: 'operator', call: { kind, queue } })
    recorder.write({ type: 'setting', queue, paused })
    void recorder.during({ kind, queue }, () => store.admin.setPaused(queue, paused))
    recorder.write({ type: 'answer', op, node: 'operator', reply: { kind } })
  }
  recorder.write({ type: 'fault', kind: 'queue paused' })
  set(true)
  world.plan(forMs, null, () => set(false))
}
