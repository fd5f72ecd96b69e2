/** Processes that stop for longer than their lease of one second: a handler blocks the event loop, or SIGSTOP freezes them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { holdfast, type Holdfast } from '../../src/index.ts'
import { freshDatabase, sharedPostgres } from '../support/servers/database.ts'
import { redisMissing } from '../support/servers/redis.ts'
import { startRedis } from '../support/servers/redis-server.ts'
import type { Child } from './support/child.ts'
import { project } from './support/project.ts'

const { write, work, node } = project()
const LEASE_MS = 1_000

interface Server {
  readonly url: string
  readonly dispose: () => Promise<void>
}

const SERVERS = [
  {
    kind: 'PostgreSQL',
    factory: 'postgresStore',
    subpath: 'postgres',
    isMissing: false,
    start: async (): Promise<Server> => {
      const database = await freshDatabase(sharedPostgres(18))
      return { url: database.url, dispose: () => database.drop() }
    },
  },
  {
    kind: 'Redis',
    factory: 'redisStore',
    subpath: 'redis',
    isMissing: redisMissing() !== '',
    // Without an append-only file the store prints a warning, and the tests examine the output.
    start: (): Promise<Server> => startRedis({ settings: { appendonly: 'yes' } }),
  },
]

let server: Server
let hf: Holdfast<'default', object>

/** Two worker processes for the same job. The one that runs it prints so and returns its pid. */
async function twoWorkers(name: string, run: string): Promise<[Child, Child]> {
  const file = write(
    `${name}.mjs`,
    `
    import { holdfast } from 'holdfast'
    const hf = holdfast({ store: ${JSON.stringify(server.url)} })
    export const job = hf.job({ name: '${name}', async run({ job }) {
      console.log('began', job.id)
      ${run}
      console.log('ended', job.id)
      return process.pid
    } })
  `,
  )
  const one = work(file, '--lease', `${LEASE_MS}ms`)
  await one.logged({ event: 'worker.started' })
  const two = work(file, '--lease', `${LEASE_MS}ms`)
  await two.logged({ event: 'worker.started' })
  return [one, two]
}

/** The two workers, the one that runs the job first. */
async function whoRuns(id: string, [one, two]: [Child, Child]): Promise<[Child, Child]> {
  const ran = await Promise.any([one, two].map((child) => child.line(`began ${id}`).then(() => child)))
  return ran === one ? [one, two] : [two, one]
}

function events(child: Child): unknown[] {
  return child.logs().map((log) => log['event'])
}

async function stop(...children: Child[]): Promise<void> {
  for (const child of children) child.kill('SIGTERM')
  for (const child of children) {
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.err.join('\n')).not.toContain('still open')
  }
}

describe.each(SERVERS.filter(({ isMissing }) => !isMissing))('on $kind', ({ start, factory, subpath }) => {
  beforeAll(async () => {
    server = await start()
    hf = holdfast({ store: server.url, logger: false })
  })

  afterAll(async () => {
    await hf.close()
    await server.dispose()
  })

  describe('a handler that blocks its event loop for three leases', () => {
    test('keeps its job, completes it, and is named', async () => {
      const workers = await twoWorkers(
        'grind',
        `const end = Date.now() + ${3 * LEASE_MS}; while (Date.now() < end);`,
      )
      const handle = await hf.contract({ name: 'grind' }).enqueue()
      const [busy, other] = await whoRuns(handle.id, workers)

      expect(await handle.result({ timeout: '20s' })).toBe(busy.pid)
      expect([...busy.out, ...other.out].filter((line) => line.startsWith('began'))).toHaveLength(1)
      expect(await handle.read()).toMatchObject({ state: 'completed', attempt: 1, crashes: 0 })

      const told = JSON.parse(await busy.line(/"worker.blocked".*"grind"/)) as Record<string, unknown>
      expect(told).toMatchObject({ level: 40, jobs: [{ id: handle.id, job: 'grind' }] })
      expect(told['msg']).toMatch(/^event loop blocked for .*s while grind ran$/)
      expect(told['blockedMs']).toBeGreaterThan(2 * LEASE_MS)
      // Printed while the loop was still blocked.
      const warnings = busy.err.filter((line) => line.includes('HoldfastWarning'))
      expect(warnings).toEqual([
        expect.stringMatching(/The event loop has been blocked for .*; running: grind\./),
      ])
      expect(busy.err.indexOf(warnings[0]!)).toBeLessThan(
        busy.err.findIndex((line) => line.includes('worker.blocked')),
      )

      for (const child of workers)
        for (const event of ['job.lost', 'job.rescued', 'worker.lost', 'worker.reregistered'])
          expect(events(child)).not.toContain(event)
      await stop(...workers)
    })
  })

  describe('a process that is frozen for several leases', () => {
    test('loses its job to another, is refused when it wakes up, and goes on under a new name', async () => {
      const workers = await twoWorkers(
        'nap',
        `await new Promise((resolve) => setTimeout(resolve, ${LEASE_MS}))`,
      )
      const nap = hf.contract({ name: 'nap' })
      const handle = await nap.enqueue()
      const [frozen, other] = await whoRuns(handle.id, workers)
      const before = await frozen.logged({ event: 'worker.started' })
      frozen.kill('SIGSTOP')

      await other.line(`ended ${handle.id}`)
      expect(await handle.result({ timeout: '20s' })).toBe(other.pid)
      await other.logged({ event: 'job.rescued', worker: before['worker'] })

      // Its timer is long overdue: the handler ends at once, and the worker tries to settle.
      frozen.kill('SIGCONT')
      await frozen.line(`ended ${handle.id}`)
      await frozen.logged({ event: 'job.lost', id: handle.id })
      const reborn = await frozen.logged({ event: 'worker.reregistered', before: before['worker'] })
      expect(await handle.result()).toBe(other.pid)
      expect(await handle.read()).toMatchObject({ state: 'completed', crashes: 1 })

      await stop(other)
      const next = await nap.enqueue()
      expect(await next.result({ timeout: '20s' })).toBe(frozen.pid)
      const completed = await frozen.logged({ event: 'job.completed', id: next.id })
      expect(completed['worker']).toBe(reborn['worker'])
      await stop(frozen)
    })
  })

  describe('the thread that renews leases', () => {
    test('keeps no process open', async () => {
      const file = write(
        `idle-${subpath}.mjs`,
        `
        import { ${factory} } from 'holdfast/${subpath}'
        const store = ${factory}({ url: ${JSON.stringify(server.url)} })
        await store.open()
        const worker = '01890000-0000-7000-8000-000000000001'
        await store.register(worker, 1_000)
        const pulse = store.keepAlive(worker, 1_000)
        while (pulse.sentMs === -Infinity) await new Promise((resolve) => setTimeout(resolve, 10))
        console.log('renewed')
      `,
      )
      const child = node(file)
      expect(await child.ended()).toEqual({ code: 0, signal: null })
      expect([child.out, child.err]).toEqual([['renewed'], []])
    })
  })
})
