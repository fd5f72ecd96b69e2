/**
 * A million jobs of mixed priorities, taken by two processes, while a transaction that is older than all of them stays
 * open: nothing that is deleted can be cleaned up. Urgent jobs arrive meanwhile, a hundred to a thousand a second.
 */
import type { Client } from 'pg'
import { withClient } from '../../../test/support/servers/client.ts'
import { checkCount, usage } from '../../contest/drain.ts'
import type { Figures } from '../../contest/figures.ts'
import { SMALL_BYTES, URGENT } from '../../contest/protocol.ts'
import { percentile } from '../../report.ts'
import type { PostgresFigure } from '../figures.ts'
import type { PostgresScenario, PostgresStage } from './scenario.ts'

const URGENT_PER_SECOND = [100, 300, 1_000]

export const oldTransaction: PostgresScenario = {
  name: 'old-transaction',
  peers: false,
  run: (stage) =>
    withClient(stage.url, async (client) => {
      await holdOldTransaction(client)
      return drainBeneath(stage)
    }),
}

/** Until its connection ends. With an id of its own and a snapshot: both hold back the cleaning. */
export async function holdOldTransaction(client: Client): Promise<void> {
  await client.query('begin isolation level repeatable read')
  await client.query('select pg_current_xact_id(), count(*) from pg_class')
}

async function drainBeneath(stage: PostgresStage): Promise<Figures<PostgresFigure>> {
  const jobs = stage.sizes.oldTransaction
  const producer = await stage.child()
  await producer.call('enqueueMany', { jobs, bytes: SMALL_BYTES, levels: [0, 1, 2, 3] })
  await stage.server.calmDown(stage.url)
  const workers = [await stage.child(), await stage.child()]
  const before = await usage(stage, workers)
  const reached = async (count: number): Promise<number> => {
    await stage.started(workers, count)
    return performance.now()
  }
  await Promise.all(workers.map((worker) => worker.call('startWork', {})))
  const startMs = await reached(1)
  await producer.call('startPacing', { perSecond: URGENT_PER_SECOND, level: URGENT })
  const firstMs = await reached(0.1 * jobs)
  const lastMs = await reached(0.9 * jobs)
  const endMs = await reached(jobs)
  const after = await usage(stage, workers)
  const sent = await producer.call('stopPacing')
  await stage.started(workers, jobs + sent)
  const results = await Promise.all(workers.map((worker) => worker.call('stopWork')))
  checkCount(results, jobs + sent)
  const waitsMs = results.flatMap((result) => result.waitsMs)
  const perSecond = (tookMs: number): number => jobs / 10 / (tookMs / 1_000)
  return {
    oldFirst: perSecond(firstMs - startMs),
    oldLast: perSecond(endMs - lastMs),
    oldServer: (after.serverMicros - before.serverMicros) / jobs,
    oldClient: (after.clientMicros - before.clientMicros) / jobs,
    urgentP50: percentile(waitsMs, 50),
    urgentP99: percentile(waitsMs, 99),
  }
}
