/**
 * Follows one no-op job on PostgreSQL and lists the files of `src/` whose functions ran: from `enqueue()` up to the
 * statement that carries the job, and from there to `completed`. Run it before and after a change to that path:
 *
 *   npx tsx scripts/count-hops.ts [--list]
 */
import { Session, type Profiler } from 'node:inspector'
import { relative, sep } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { holdfast } from '../src/index.ts'
import { postgresStore } from '../src/stores/postgres/index.ts'
import { startPostgres } from '../test/support/servers/postgres-server.ts'

const SRC = fileURLToPath(new URL('../src', import.meta.url)) + sep
const WARM_UP_JOBS = 20
const RUNS = 7
/** After this long a worker has nothing left to do for the job before, and waits. */
const SETTLED_MS = 430

/** Counts the calls of every function, from the last time it was asked on. */
class Coverage {
  readonly #session = new Session()

  constructor() {
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  }

  /** Files of `src/` with a function that ran since the last time. */
  take(): string[] {
    let scripts: readonly Profiler.ScriptCoverage[] = []
    this.#session.post('Profiler.takePreciseCoverage', (error, { result }) => {
      if (error !== null) throw error
      scripts = result
    })
    return scripts
      .filter(({ functions }) => functions.some(hasRun))
      .flatMap(({ url }) => (url.startsWith('file:') ? [fileURLToPath(url)] : []))
      .filter((path) => path.startsWith(SRC))
      .map((path) => relative(SRC, path))
      .toSorted()
  }

  end(): void {
    this.#session.disconnect()
  }
}

function hasRun({ ranges }: Profiler.FunctionCoverage): boolean {
  return (ranges[0]?.count ?? 0) > 0
}

interface Hops {
  readonly toStatement: readonly string[]
  readonly toCompleted: readonly string[]
}

async function follow(url: string): Promise<Hops> {
  const hf = holdfast({ store: postgresStore({ url }), logger: false })
  const coverage = new Coverage()
  try {
    const job = hf.job({ name: 'noop', run: () => undefined })
    const completed = (): Promise<void> =>
      new Promise((resolve) => {
        const stop = hf.on('job.completed', () => {
          stop()
          resolve()
        })
      })
    await hf.work()
    for (let count = 0; count < WARM_UP_JOBS; count++) {
      const done = completed()
      await job.enqueue()
      await done
    }
    const runs: Hops[] = []
    for (let count = 0; count < RUNS; count++) {
      await setTimeout(SETTLED_MS)
      const before = onNextQuery(() => coverage.take())
      const done = completed()
      coverage.take()
      await job.enqueue()
      await done
      const toStatement = before.end()
      runs.push({ toStatement, toCompleted: [...new Set([...toStatement, ...coverage.take()])] })
    }
    return {
      toStatement: inAll(runs.map((run) => run.toStatement)),
      toCompleted: inAll(runs.map((run) => run.toCompleted)),
    }
  } finally {
    coverage.end()
    await hf.close()
  }
}

/** What each run has: a poll or an upkeep duty that fell into one of them is not part of the job's path. */
function inAll(lists: readonly (readonly string[])[]): string[] {
  const [first = [], ...rest] = lists
  return first.filter((file) => rest.every((list) => list.includes(file))).toSorted()
}

/** Takes down what has run when the driver is given its next statement. */
function onNextQuery(take: () => string[]): { end(): string[] } {
  const { prototype } = Client
  const query = Object.getOwnPropertyDescriptor(prototype, 'query')
  if (query === undefined) throw new Error('The driver has no method query.')
  const original = query.value as (...args: unknown[]) => unknown
  let taken: string[] | undefined
  Object.defineProperty(prototype, 'query', {
    ...query,
    value(this: Client, ...args: unknown[]) {
      taken ??= take()
      return original.apply(this, args)
    },
  })
  return {
    end() {
      Object.defineProperty(prototype, 'query', query)
      return taken ?? []
    },
  }
}

const server = await startPostgres({ version: 18 })
try {
  const { toStatement, toCompleted } = await follow(await server.createDatabase('hops'))
  if (process.argv.includes('--list'))
    for (const file of toCompleted) console.log(`${toStatement.includes(file) ? '→' : ' '} ${file}`)
  console.log(`${toStatement.length} files up to the statement, ${toCompleted.length} to completed`)
} finally {
  await server.dispose()
}
