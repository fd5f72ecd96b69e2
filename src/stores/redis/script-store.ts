/**
 * The contract of `store.ts` in Lua, over any executor. Each method is one script on a shard, and the work itself is
 * done by the files of `lua/`: read those to know what happens.
 */
import type { Token } from '../../job/ids.ts'
import type { Clock } from '../../std/clock.ts'
import type { Random } from '../../std/random.ts'
import {
  MAX_LOG_LINES,
  type HeartbeatAnswer,
  type HeartbeatRequest,
  type Report,
  type Store,
} from '../store.ts'
import { redisAdmin } from './admin.ts'
import { Cycles } from './cycle.ts'
import type { RedisValue } from './driver.ts'
import { enqueue } from './enqueue.ts'
import type { Executor } from './executor.ts'
import { Lanes } from './lanes.ts'
import type { Run } from './run.ts'
import { redisSchedules } from './schedules.ts'
import type { Scripts } from './scripts.ts'
import type { Shards } from './shards.ts'
import { redisUpkeep } from './upkeep.ts'
import type { WakeUps } from './wake-ups.ts'

export interface ScriptStoreParts {
  readonly executor: Executor
  readonly scripts: Scripts
  readonly shards: Shards
  readonly wakeUps: WakeUps
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly random: Random
  /** Refuses a server that cannot be used. */
  readonly check: () => Promise<void>
}

type HeartbeatRow = readonly [
  alive: number,
  tokens: readonly string[],
  cancels: readonly (readonly [token: string, position: number, reason: string])[],
]

export function scriptStore(parts: ScriptStoreParts): Store {
  const { executor, scripts, shards, wakeUps, clock, random } = parts
  const run: Run = async <Answer>(...[shard, name, args]: Parameters<Run>) =>
    (await executor.script(scripts.get(name), shard.keys, args)) as Answer
  const refuseWhenClosed = (): void => executor.refuseWhenClosed()
  const lanes = new Lanes(clock, random)
  const cycles = new Cycles(run, shards)
  return {
    kind: 'redis',
    open: () => parts.check(),
    async close() {
      await Promise.all([wakeUps.close(), executor.close()])
    },
    async enqueue(flush) {
      refuseWhenClosed()
      return enqueue(run, shards, lanes, flush)
    },
    async register(worker, leaseMs) {
      await run(shards.control, 'register', [worker, Math.round(leaseMs)])
    },
    async retire(worker) {
      await run(shards.control, 'retire', [worker])
    },
    cycle: (request) => cycles.cycle(request),
    heartbeat: (request) => heartbeat(run, shards, request),
    async report(worker, reports) {
      await run(shards.control, 'report', [worker, MAX_LOG_LINES, ...reports.flatMap(packReport)])
    },
    subscribe: (listener) => wakeUps.subscribe(listener),
    upkeep: redisUpkeep(run, shards, random),
    schedules: redisSchedules(executor, run, shards),
    admin: redisAdmin(run, shards, refuseWhenClosed),
  }
}

async function heartbeat(
  run: Run,
  { control }: Shards,
  { worker, strangers }: HeartbeatRequest,
): Promise<HeartbeatAnswer> {
  const [alive, tokens, cancels] = await run<HeartbeatRow>(control, 'heartbeat', [worker, ...strangers])
  return {
    alive: alive === 1,
    tokens: tokens.map(tokenOf),
    cancelled: cancels.map(([token, position, reason]) => ({
      token: tokenOf(token),
      position,
      reason: JSON.parse(reason) as string | null,
    })),
  }
}

function tokenOf(text: string): Token {
  return Number(text) as Token
}

function packReport({ token, position, progress, log }: Report): RedisValue[] {
  const lines = log.slice(-MAX_LOG_LINES).map((line) => JSON.stringify(line))
  return [token, position, progress === null ? '' : JSON.stringify(progress), lines.length, ...lines]
}
