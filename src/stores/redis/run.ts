import type { RedisValue } from './driver.ts'
import type { ScriptName } from './scripts.ts'
import type { Shard } from './shards.ts'

/** Runs a script on a shard. What it answers is said in the head of its file; the caller reads it as that. */
export type Run = <Answer>(shard: Shard, name: ScriptName, args: readonly RedisValue[]) => Promise<Answer>
