import type { Layout } from '../layout.ts'
import type { Run } from '../run.ts'
import { ClusterWorkerCalls } from './cluster-worker-calls.ts'
import { Outbox } from './outbox.ts'
import { queueShards } from './queue-shards.ts'

export function clusterLayout(prefix: string, run: Run): Layout {
  const shards = queueShards(prefix, run)
  const outbox = new Outbox(run, shards)
  return {
    shards,
    workerCalls: new ClusterWorkerCalls(run, shards),
    fire: (...tick) => outbox.fire(...tick),
    drain: () => outbox.drain(),
  }
}
