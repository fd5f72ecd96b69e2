import type { RedisValue } from './driver.ts'
import type { ScriptName } from './scripts.ts'
import type { Shard } from './shards.ts'

/**
 * Runs a script on a shard. The head of its file documents the answer, which the caller parses. `withinMs`: see `Store`.
 */
export type Run = <Answer>(
  shard: Shard,
  name: ScriptName,
  args: readonly RedisValue[],
  withinMs?: number,
) => Promise<Answer>
