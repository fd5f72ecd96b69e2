/** Processes that share a store hear of each other: by the bell, or within about a second without it. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Member } from './support/member.ts'
import { folderForStores } from './support/place.ts'

const directory = join(folderForStores(), 'store')
/** Nothing here is found by polling. */
const POLL = '30s'
const ROUNDS = 40
let sender: Member
let worker: Member

beforeAll(async () => {
  ;[sender, worker] = await Promise.all([Member.withStore(directory), Member.withStore(directory)])
  await worker.do('work', { poll: POLL, concurrency: 100 })
})

afterAll(() => Member.endAll())

/** How long until the job of another process ran here. */
async function wakeUpMs(): Promise<number> {
  const { ids, atMs } = await sender.do('enqueue', 1, { hold: true })
  const [id = ''] = ids
  const began = await worker.hears('began', id)
  return began.atMs - atMs
}

describe('two processes on one store', () => {
  test('an enqueue in one wakes a worker in the other', async ({ annotate }) => {
    const waits: number[] = []
    for (let round = 0; round < ROUNDS; round++) waits.push(await wakeUpMs())
    waits.sort((a, b) => a - b)
    const [median = NaN, worst = NaN] = [waits[ROUNDS / 2], waits.at(-1)]
    await annotate(
      `from enqueue to start: median ${median.toFixed(1)} ms, worst ${worst.toFixed(1)} ms of ${ROUNDS}`,
    )
    // The look without a bell, once a second, would make it 500.
    expect(median).toBeLessThan(250)
  })

  test('a cancel in one aborts a job in the other', async () => {
    const { ids } = await sender.do('enqueue', 1, { hold: true })
    const [id = ''] = ids
    await worker.hears('began', id)
    const askedMs = await sender.do('cancel', id)
    const { atMs } = await worker.hears('aborted', id)
    // A heartbeat, which tells of cancels as well, comes every ten seconds at this lease.
    expect(atMs - askedMs).toBeLessThan(3_000)
  })

  test('a pause in one stops the claims of the other, and a resume wakes it', async () => {
    await sender.do('pause')
    const { ids } = await sender.do('enqueue', 1, { hold: true })
    const [id = ''] = ids
    const resumedMs = await sender.do('resume')
    const { atMs } = await worker.hears('began', id)
    expect(atMs).toBeGreaterThan(resumedMs)
    expect(atMs - resumedMs).toBeLessThan(3_000)
  })

  test('a worker that listens to a bell which was deleted finds jobs within about two seconds', async ({
    annotate,
  }) => {
    rmSync(join(directory, 'bell'))
    // A process that comes later makes another bell, which nobody hears who was there before.
    sender = await Member.withStore(directory)
    const waits: number[] = []
    for (let round = 0; round < 3; round++) waits.push(await wakeUpMs())
    const worst = Math.max(...waits)
    await annotate(`from enqueue to start without a bell: at most ${worst.toFixed(0)} ms`)
    expect(worst).toBeLessThan(3_000)
  })
})
