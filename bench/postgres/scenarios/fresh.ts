/**
 * A server as it is after `initdb`: default settings, and no statistics about the tables. Plans that are made while
 * tables are empty must serve when they are full.
 */
import { drain } from '../../contest/drain.ts'
import { SMALL_BYTES } from '../../contest/protocol.ts'
import type { FreshName, Slots } from '../figures.ts'
import { PostgresBenchServer } from '../server.ts'
import { loadFigures, saturating } from './load.ts'
import type { PostgresScenario, PostgresStage } from './scenario.ts'

/** What happened to the database before the load. */
type Past = 'never analysed' | 'analysed while empty' | 'after a million jobs'

/** Further rounds would tell little and take long. */
const PAST_ROUNDS = 3

/** In a note. */
const TABLES = 5

const PEERS: readonly string[] = ['graphile-worker']

export const FRESH: readonly PostgresScenario[] = [
  fresh('fresh16', 16, 'never analysed'),
  { ...fresh('fresh64', 64, 'never analysed'), peers: PEERS },
  { ...fresh('fresh256', 256, 'never analysed'), peers: PEERS },
  fresh('fresh16Analysed', 16, 'analysed while empty'),
  fresh('fresh64Analysed', 64, 'analysed while empty'),
  fresh('fresh256Analysed', 256, 'analysed while empty'),
  fresh('fresh16Used', 16, 'after a million jobs'),
  fresh('fresh64Used', 64, 'after a million jobs'),
  fresh('fresh256Used', 256, 'after a million jobs'),
]

export const steady: PostgresScenario = {
  name: 'steady',
  peers: PEERS,
  run: (stage) =>
    onFreshServer(stage, (there) => loadFigures('steady', there, { perSecond: 800, concurrency: 32 })),
}

function fresh(name: FreshName, slots: Slots, past: Past): PostgresScenario {
  return {
    name,
    group: 'fresh',
    peers: false,
    ...(past === 'never analysed' ? {} : { maxRounds: PAST_ROUNDS }),
    run: (stage) =>
      onFreshServer(stage, async (there) => {
        await live(there, past)
        const figures = await loadFigures(name, there, saturating(slots))
        await noteScans(there)
        return figures
      }),
  }
}

/** A plan that reads whole tables is what makes a rate fall. */
async function noteScans(stage: PostgresStage): Promise<void> {
  const scans = await stage.server.sequentialScans(stage.url)
  const most = scans
    .slice(0, TABLES)
    .map(({ table, scans: times, pages }) => `${table} ${times} × ${pages} pages`)
  stage.note(`sequential scans: ${most.join(', ')}`)
}

async function live(stage: PostgresStage, past: Past): Promise<void> {
  if (past === 'never analysed') return
  const producer = await stage.child({ history: true })
  if (past === 'analysed while empty') {
    await stage.server.analyze(stage.url)
  } else {
    const jobs = stage.sizes.used
    await producer.call('enqueueMany', { jobs, bytes: SMALL_BYTES })
    await drain(stage, { jobs, config: { history: true } })
  }
  await producer.dispose()
}

/** With default settings, as a package manager would leave it. */
async function onFreshServer<T>(
  stage: PostgresStage,
  work: (there: PostgresStage) => Promise<T>,
): Promise<T> {
  const server = await PostgresBenchServer.start({})
  try {
    return await stage.elsewhere(work, server)
  } finally {
    await server.dispose()
  }
}
