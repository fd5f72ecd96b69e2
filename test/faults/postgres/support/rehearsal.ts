/** Programs of several builds on one database, what they did, and what must hold at the end. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { expect } from 'vitest'
import { Child } from '../../support/child.ts'
import { until } from '../../../support/until.ts'
import type { Build } from './builds.ts'

export interface ProgramOptions {
  /** Whether it enqueues as well. @default false */
  readonly produce?: boolean
  /** @default true */
  readonly migrate?: boolean
}

interface Program {
  readonly name: string
  readonly build: Build
  readonly child: Child
}

/** What a program says beside its name and its end. */
interface Fact {
  readonly problem?: string
  readonly refused?: string
}

export class Rehearsal {
  readonly #url: string
  readonly #client: Client
  readonly #running = new Set<Program>()
  readonly #all: Program[] = []

  constructor(url: string) {
    this.#url = url
    this.#client = new Client({ connectionString: url })
  }

  async prepare(): Promise<void> {
    await this.#client.connect()
    await this.#client.query('create table effect (job uuid not null, program text not null)')
  }

  async start(name: string, build: Build, options: ProgramOptions): Promise<Program> {
    const child = this.#spawn(name, build, options)
    const program = { name, build, child }
    this.#all.push(program)
    rmSync(acked(program), { force: true })
    await child.line('"working"')
    this.#running.add(program)
    return program
  }

  /** The code with which a program that starts is refused. */
  async refused(build: Build, options: ProgramOptions): Promise<string | undefined> {
    const child = this.#spawn('refused', build, options)
    const fact = JSON.parse(await child.line('"refused"')) as Fact
    await child.ended()
    return fact.refused
  }

  /** Waits until every running program has run this many more jobs. */
  async progress(jobs = 100): Promise<void> {
    const before = await this.#effects()
    const done = async (): Promise<boolean> => {
      this.#expectAlive()
      const now = await this.#effects()
      return [...this.#running].every(({ name }) => (now.get(name) ?? 0) >= (before.get(name) ?? 0) + jobs)
    }
    try {
      await until(`${jobs} more jobs by each of ${this.#names()}`, done, { deadlineMs: 20_000 })
    } catch (cause) {
      throw new Error(`${this.#problems().join('\n')}\n${JSON.stringify([...(await this.#effects())])}`, {
        cause,
      })
    }
  }

  /** What `holdfast schema` of that build prints, as psql would run it. */
  async runSchema({ folder }: Build): Promise<void> {
    const cli = join(folder, 'node_modules/holdfast/dist/cli/bin.js')
    const child = new Child(process.execPath, [cli, 'schema'], { cwd: folder })
    expect(await child.ended(), child.err.join('\n')).toEqual({ code: 0, signal: null })
    await this.#client.query(child.out.join('\n'))
  }

  /** Makes the next run of the schema take every function, type and view for another one: all are dropped and created. */
  async forgetHeaders(): Promise<void> {
    await this.#client.query(
      `update holdfast.schema_info set headers = (select jsonb_object_agg(name, 'another') from jsonb_object_keys(headers) as name)`,
    )
  }

  async version(): Promise<number> {
    const { rows } = await this.#client.query<{ version: number }>('select version from holdfast.schema_info')
    return rows[0]?.version ?? 0
  }

  /** Settles of leases that were claimed through the function that only the next version has. */
  async claimedByNext(): Promise<number> {
    const { rows } = await this.#client.query<{ count: string }>(
      "select count(*) from holdfast.history where claimed_by = 'next'",
    )
    return Number(rows[0]?.count)
  }

  async stop(...programs: readonly Program[]): Promise<void> {
    for (const program of programs) {
      this.#running.delete(program)
      program.child.kill('SIGTERM')
    }
    for (const { name, child } of programs)
      expect({ name, ...(await child.ended()) }, child.err.join('\n')).toEqual({
        name,
        code: 0,
        signal: null,
      })
  }

  /** With the programs that still run: lets them finish everything, stops them, and looks at what is there. */
  async judge(...programs: readonly Program[]): Promise<void> {
    for (const { child } of programs) child.kill('SIGUSR2')
    await Promise.all(programs.map(({ child }) => child.line('"quiet"')))
    await until('every job to be final', async () => {
      const { rows } = await this.#client.query<{ open: string }>(
        'select sum(scheduled + ready + running) as open from holdfast.queue_status',
      )
      return Number(rows[0]?.open) === 0
    })
    await this.stop(...programs)
    expect(this.#problems()).toEqual([])
    await this.#judgeJobs()
    await this.#judgeCounts()
  }

  async close(): Promise<void> {
    await Promise.all([...this.#running].map(({ child }) => child.killNow()))
    await this.#client.end()
  }

  /** Every job that was acked is there once and completed, and so is its effect. */
  async #judgeJobs(): Promise<void> {
    const ids = this.#all.flatMap((program) => readAcked(program))
    expect(ids.length).toBeGreaterThan(500)
    const { rows } = await this.#client.query(
      `with job as (
         select id, count(*) as jobs, count(*) filter (where state = 'completed') as completed
         from (select id, state from holdfast.job union all select id, state from holdfast.packed_job) as job group by id
       ), done as (select job as id, count(*) as effects from effect group by job)
       select id, jobs, completed, effects from unnest($1::uuid[]) as acked (id)
       left join job using (id) left join done using (id)
       where (jobs, completed, effects) is distinct from (1, 1, 1) limit 10`,
      [ids],
    )
    expect(rows).toEqual([])
  }

  /** What the queues count is what is there, and nothing is there that nobody enqueued. */
  async #judgeCounts(): Promise<void> {
    const counted = await this.#client.query(
      `select queue, scheduled, ready, running, completed, dead, cancelled from holdfast.queue_status order by queue`,
    )
    const recounted = await this.#client.query(
      `select queue, ${['scheduled', 'ready', 'running', 'completed', 'dead', 'cancelled']
        .map((state) => `count(*) filter (where state = '${state}') as ${state}`)
        .join(', ')}
       from (select * from holdfast.job union all select * from holdfast.packed_job) as job group by queue order by queue`,
    )
    expect(counted.rows).toEqual(recounted.rows)
  }

  #spawn(name: string, { folder }: Build, { produce = false, migrate = true }: ProgramOptions): Child {
    const told = JSON.stringify({ name, url: this.#url, produce, migrate })
    return new Child(process.execPath, ['--import', 'tsx', 'program.ts', told], { cwd: folder })
  }

  async #effects(): Promise<Map<string, number>> {
    const { rows } = await this.#client.query<{ program: string; count: string }>(
      'select program, count(*) from effect group by program',
    )
    return new Map(rows.map(({ program, count }) => [program, Number(count)]))
  }

  #names(): string {
    return [...this.#running].map(({ name }) => name).join(', ')
  }

  #expectAlive(): void {
    for (const { name, child } of this.#running)
      if (!child.groupLives()) throw new Error(`${name} ended.\n${child.err.join('\n')}`)
  }

  /** What the application or its operator would notice; but a machine that is strained is no failure. */
  #problems(): string[] {
    const isSlow = (line: string): boolean => /"store\.down".*did not answer within/.test(line)
    return this.#all.flatMap(({ name, child }) => [
      ...child.out
        .filter((line) => line.includes('"problem"') && !isSlow(line))
        .map((line) => `${name}: ${line}`),
      ...child.err.map((line) => `${name}: ${line}`),
    ])
  }
}

function acked({ name, build }: Program): string {
  return join(build.folder, `${name}.acked`)
}

function readAcked(program: Program): string[] {
  const file = acked(program)
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}
