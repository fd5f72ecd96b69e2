/**
 * The shards of a cluster: one for each queue, which its hash tag keeps in one hash slot, and one for what belongs to no
 * queue. A set in that one tells which queues there are.
 *
 * Scripts compute the names of their keys, and a node looks only at those that a call declares. The base is declared,
 * which never exists: a node that is handing over the hash slot then refuses the call as a whole, because the key may have
 * left already. Were it one that exists, a script would run, and half-way into others that have left.
 */
import type { Run } from '../run.ts'
import type { Shard, Shards } from '../shards.ts'

export function queueShards(prefix: string, run: Run): Shards {
  const control = shardAt(`${prefix}:{${prefix}}:`)
  const shards = new Map<string, Shard>()
  const known = new Set<string>()
  const of = (queue: string): Shard => {
    const shard = shards.get(queue) ?? shardAt(`${prefix}:{${prefix}/${queue}}:`)
    shards.set(queue, shard)
    return shard
  }
  return {
    control,
    of,
    all: async () => (await run<string[]>(control, 'list_shards', [])).map(of),
    async know(queues) {
      const unknown = [...new Set(queues)].filter((queue) => !known.has(queue))
      if (unknown.length === 0) return
      await run(control, 'add_shards', unknown)
      for (const queue of unknown) known.add(queue)
    },
  }
}

function shardAt(base: string): Shard {
  return { keys: [base] }
}
