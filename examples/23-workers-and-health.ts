// Several named workers in one process: started and stopped together, listed by every process on the same store, and
// checked every 30 seconds, together with your own checks.
import { holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({
  logger: false,
  queues: { mail: {}, reports: {} },
  // Thresholds beyond which a worker is unhealthy; by default 30 minutes, 10 % and 1,000 jobs.
  health: { errorRate: 0.2 },
})
const mail = hf.job({
  name: 'mail',
  queue: 'mail',
  retry: { attempts: 1 },
  input: z.object({ to: z.string() }),
  run({ input }) {
    if (!input.to.includes('@')) throw new Error(`${input.to} has no @`)
  },
})
hf.job({ name: 'report', queue: 'reports', run: () => undefined })

hf.workers.define('mail', { queues: ['mail'], concurrency: 10 })
hf.workers.define('reports', { queues: ['reports'], health: { queueSize: 50 } })
await hf.workers.start()

async function show(): Promise<void> {
  for (const { name, state, slots, processed, errors } of await hf.workers.status())
    console.log(`${name}: ${state}, ${slots} slots, ${processed} processed, ${errors} errors`)
  const { healthy, workers, checks } = await hf.health.report()
  console.log(healthy ? 'all is well' : 'unhealthy:')
  for (const { name, problems } of workers)
    for (const problem of problems) console.log(`  ${name}: ${problem}`)
  for (const check of checks) if (!check.healthy) console.log(`  ${check.name}: ${check.message}`)
}
await show()

const disk = { full: 0.97 }
hf.health.check('disk', () => disk.full < 0.9 || `The disk is ${disk.full * 100} % full.`)
const bad = ['ada', 'grace', 'linus', 'ken']
const good = Array.from({ length: 8 }, (_, n) => `user${n}@example.com`)
for (const to of [...bad, ...good]) {
  const handle = await mail.enqueue({ to })
  await handle.result().catch(() => undefined)
}
await show()

await hf.workers.stop('reports')
console.log('running:', (await hf.workers.status()).map(({ name }) => name).join(', '))
await hf.workers.stop({ drain: '10s' })
console.log('running:', (await hf.workers.status()).length)

try {
  await hf.workers.start('mial')
} catch (error) {
  console.log((error as Error).message)
}
await hf.close()
