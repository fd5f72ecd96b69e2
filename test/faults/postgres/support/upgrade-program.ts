/**
 * A user's program, the same for every build: it runs jobs, and enqueues if told to. It prints one JSON object per line. It
 * is copied into the projects that have the builds installed.
 */
import { appendFileSync } from 'node:fs'
import { holdfast, type Events } from 'holdfast'
import { postgresStore } from 'holdfast/postgres'
import { Pool } from 'pg'
import { z } from 'zod'

const { name, url, migrate, produce } = JSON.parse(process.argv[2] ?? '') as {
  readonly name: string
  readonly url: string
  readonly migrate: boolean
  readonly produce: boolean
}
const say = (fact: Readonly<Record<string, unknown>>): void => console.log(JSON.stringify(fact))

function problem(what: string, error: unknown): void {
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  say({ problem: what, message, cause: String(cause) })
}

const hf = holdfast({
  store: postgresStore({ url, migrate, onNotice: (line) => problem('notice', line) }),
  logger: false,
})
const PROBLEMS = ['store.down', 'store.unusable', 'duty.failed', 'job.unhandled', 'listener.failed'] as const
for (const event of PROBLEMS) hf.on(event, ({ error }) => problem(event, error))
const LOSSES: readonly (keyof Events)[] = [
  'job.lost',
  'job.stuck',
  'job.rescued',
  'commit.lost',
  'worker.reregistered',
  'worker.lost',
]
for (const event of LOSSES) hf.on(event, (facts) => problem(event, JSON.stringify(facts)))
hf.on('job.failed', ({ error }) => {
  if (error.message !== 'on purpose') problem('job.failed', error)
})

const pool = new Pool({ connectionString: url, max: 4 })

interface Db {
  query(text: string, values: unknown[]): Promise<unknown>
}

async function note(db: Db, { id }: { readonly id: string }): Promise<void> {
  await db.query('insert into effect (job, program) values ($1, $2)', [id, name])
}

// One job for each path through the store.
const plain = hf.job({ name: 'plain', run: ({ job }) => note(pool, job) })
const large = hf.job({
  name: 'large',
  input: z.object({ padding: z.string() }),
  run: ({ job }) => note(pool, job),
})
const answering = hf.job({
  name: 'answering',
  async run({ job, log }) {
    log.info('at work')
    await note(pool, job)
    return { program: name }
  },
})
const paid = hf.job({ name: 'paid', run: ({ job, commit }) => commit((tx) => note(tx, job)) })
const flaky = hf.job({
  name: 'flaky',
  retry: { attempts: 3, delay: 50 },
  async run({ job }) {
    if (job.attempt === 1) throw new Error('on purpose')
    await note(pool, job)
  },
})

const enqueues: Readonly<Record<string, (serial: number) => Promise<{ readonly id: string }>>> = {
  plain: () => plain.enqueue(),
  large: () => large.enqueue({ padding: 'x'.repeat(2_000) }),
  unique: (serial) =>
    plain.enqueue(undefined, { unique: { key: `${name} ${serial}`, onConflict: 'replace' } }),
  delayed: () => plain.enqueue(undefined, { in: 100 }),
  answering: () => answering.enqueue(),
  paid: () => paid.enqueue(),
  flaky: () => flaky.enqueue(),
  // The owner of a transaction has to repeat it if it fails.
  transaction: () => inTransaction().catch(() => inTransaction()),
}

async function inTransaction(): Promise<{ readonly id: string }> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const handle = await plain.enqueue(undefined, { tx: client })
    await client.query('commit')
    return handle
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

let stopping = false
async function keep(doing: string, work: (serial: number) => Promise<unknown>): Promise<void> {
  for (let serial = 0; !stopping; serial++) {
    await work(serial).catch((error: unknown) => problem(doing, error))
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const worker = await hf.work({ concurrency: 10, poll: 200 }).catch((error: Error & { code?: string }) => {
  say({ refused: error.code, message: error.message })
  process.exit(1)
})
const loops = [keep('list the queues', () => hf.queues())]
if (produce) {
  for (const [kind, enqueue] of Object.entries(enqueues)) {
    const some = async (serial: number): Promise<void> => {
      const handles = await Promise.all([0, 1, 2].map((index) => enqueue(serial * 3 + index)))
      appendFileSync(`${name}.acked`, handles.map(({ id }) => `${id}\n`).join(''))
    }
    loops.push(keep(`enqueue ${kind}`, some))
  }
}
async function stopEnqueuing(): Promise<void> {
  stopping = true
  await Promise.all(loops)
  say({ quiet: name })
}
async function stop(): Promise<void> {
  await stopEnqueuing()
  await worker.stop()
  await hf.close()
  await pool.end()
}
process.once('SIGUSR2', () => void stopEnqueuing())
process.once('SIGTERM', () => void stop())
// Must be the last line: the test may send a signal as soon as it reads it.
say({ working: name })
