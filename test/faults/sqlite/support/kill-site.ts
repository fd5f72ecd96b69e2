/** The kill soak on the embedded store: its directory, and the processes that share it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Database } from '../../../../src/stores/sqlite/driver.ts'
import { lockHolder } from '../../../../src/stores/sqlite/files/lock-holder.ts'
import { readProcessStat } from '../../../../src/stores/sqlite/files/process-stat.ts'
import type { Store } from '../../../../src/stores/store.ts'
import { killSoak, type Inspected, type KillOptions, type KillReport } from '../../support/kill-soak.ts'
import { areElsewhere, completedIn, heldBy } from '../../support/running-jobs.ts'
import { until } from '../../../support/until.ts'
import { EFFECTS, openEffects, readEffects } from './effects.ts'
import { installMoveLog, judgeMoves } from './move-log.ts'
import { AUDIT, openPast, openStore } from './place.ts'

const JOBS = fileURLToPath(new URL('kill-jobs.ts', import.meta.url))

export async function killSoakOnSqlite(options: KillOptions): Promise<KillReport> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-soak-'))
  const directory = join(folder, 'store')
  const store = await openStore(directory)
  const database = await openPast(directory)
  const effects = await openEffects(folder)
  try {
    installMoveLog(database)
    return await killSoak(
      {
        url: `file:${directory}`,
        store,
        jobs: JOBS,
        clients: 3,
        held: (workers) => heldBy(store, workers),
        isRecovered: async (workers, jobs) => areGone(database, workers) && (await areElsewhere(store, jobs)),
        // Its handlers write as well.
        holdsUpOthers: (pid) => holdsWriteLock([join(directory, 'holdfast.db'), join(folder, EFFECTS)], pid),
        inspect: () => inspect({ store, database, effects }),
      },
      options,
    )
  } finally {
    effects.close()
    database.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Once it has really stopped. */
async function holdsWriteLock(databases: readonly string[], pid: number): Promise<boolean> {
  const isStopped = (): boolean => {
    const stat = readProcessStat(pid)
    return typeof stat === 'object' && stat.state === 'T'
  }
  await until(`process ${pid} to stop`, isStopped, { everyMs: 1 })
  return databases.some((database) => lockHolder(database)?.startsWith(`process ${pid} `) ?? false)
}

function areGone(database: Database, workers: readonly string[]): boolean {
  const known = database.prepare('select 1 from holdfast_worker where id = ?')
  return workers.every((id) => known.get(id) === undefined)
}

interface Parts {
  readonly store: Store
  readonly database: Database
  readonly effects: Database
}

async function inspect({ store, database, effects }: Parts): Promise<Inspected> {
  const noted = readEffects(effects)
  let badEffects = 0
  let repeatedEffects = 0
  let completed = 0
  for await (const { id, result, attempt } of completedIn(store)) {
    completed++
    const effect = noted.get(id)
    // Its result is the fence that it was completed under.
    if (result !== JSON.stringify(effect?.fence)) badEffects++
    repeatedEffects += (effect?.times ?? 0) - attempt
  }
  const audited = database.prepare(AUDIT).all() as { readonly wrong: string }[]
  const structure = database.prepare('pragma integrity_check').all() as { readonly integrity_check: string }[]
  const { broken: moved, completed: told } = judgeMoves(database)
  const broken = [
    ...moved,
    // A log that does not tell of them all would be no log.
    ...(told === completed ? [] : [`${completed} jobs are completed, of ${told} the log tells`]),
    ...audited.map(({ wrong }) => wrong),
    ...structure.map((row) => row.integrity_check).filter((found) => found !== 'ok'),
  ]
  return { moves: null, broken, badEffects, repeatedEffects }
}
