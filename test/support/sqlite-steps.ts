/** Steps of the embedded store on a database in memory, as the processes that share it run them, on clocks of the test. */
import type { WorkerId } from '../../src/job/ids.ts'
import type { NewJob } from '../../src/job/record.ts'
import { systemRandom } from '../../src/std/random.ts'
import { newFlushId, newJobs, newWorkerId } from '../../src/stores/conformance/support.ts'
import { loadDriver, type Database } from '../../src/stores/sqlite/driver.ts'
import { Db, readSql } from '../../src/stores/sqlite/engine/db.ts'
import { Engine } from '../../src/stores/sqlite/engine/engine.ts'
import { Runner } from '../../src/stores/sqlite/engine/runner.ts'
import type { StepAnswer, StepArgs, StepName } from '../../src/stores/sqlite/engine/steps.ts'

const { DatabaseSync } = await loadDriver()
const { tables, statements } = readSql()

export const LEASE_MS = 30_000

export type Ask = <Name extends StepName>(name: Name, ...args: StepArgs<Name>) => StepAnswer<Name>

export class StepWorld {
  readonly database: Database = new DatabaseSync(':memory:')
  /** Identities of processes. */
  readonly gone = new Set<string>()
  ownsFile = true
  nowMs = Date.UTC(2030, 0, 1)
  monotonicMs = 0

  constructor() {
    this.database.exec('pragma auto_vacuum = incremental')
    this.database.exec(tables)
  }

  pass(ms: number): void {
    this.nowMs += ms
    this.monotonicMs += ms
  }

  /** The store as the process of that identity sees it; null if it is unknown. */
  as(own: string | null, database = this.database): Ask {
    const runner = new Runner({ database, engine: this.#engine(own, database), lockHolder: () => null })
    return (name, ...args) => {
      const [, outcome] = runner.run([{ name, args }]).outcomes[0] ?? []
      if (outcome === undefined || 'error' in outcome)
        throw new Error('The call failed.', { cause: outcome?.error })
      return outcome.value as StepAnswer<typeof name>
    }
  }

  #engine(own: string | null, database: Database): Engine {
    return new Engine({
      db: new Db(database, statements),
      clock: { now: () => this.nowMs, monotonicMs: () => this.monotonicMs },
      random: systemRandom,
      processes: { own, isGone: (process) => this.gone.has(process) },
      ownsFile: this.ownsFile,
    })
  }

  /** A worker of that process with two claimed jobs, one of which may be running. */
  busyWorker(process: string | null): WorkerId {
    const worker = newWorkerId()
    const ask = this.as(process)
    const jobs: readonly NewJob[] = newJobs(2)
    ask('enqueue', { id: newFlushId(), jobs })
    ask('register', worker, LEASE_MS, 1)
    ask('cycle', { worker, settle: [], claim: { queue: jobs[0]?.queue ?? '', limit: 10, suspects: true } })
    return worker
  }
}
