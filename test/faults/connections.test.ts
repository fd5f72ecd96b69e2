/** The connection to a server (PostgreSQL, Redis) breaks and comes back, in one suite for every store that has a server. */
import { describe, expect, test, type TestContext } from 'vitest'
import { PATIENT, type Fleet } from './support/fleet.ts'
import { SERVER_KINDS } from './support/server-kinds.ts'

const ROUNDS = 6
const MANY_JOBS = 30

/** Breaks something several times, each time while all workers are busy. No enqueue may fail because of it. */
async function breakRepeatedly(
  fleet: Fleet,
  { annotate }: TestContext,
  kind: string,
  harm: () => unknown,
): Promise<void> {
  const took: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    fleet.fault(kind)
    await harm()
    fleet.up()
    took.push(await fleet.reclaimed())
    await fleet.progress(10)
  }
  await annotate(`claims again after ${Math.round(Math.max(...took))} ms at most`)
  expect(fleet.refused).toEqual([])
  await fleet.judge()
}

async function expectRecovery(fleet: Fleet, { annotate }: TestContext): Promise<void> {
  fleet.up()
  await annotate(`claims again after ${Math.round(await fleet.reclaimed())} ms`)
  await fleet.progress(MANY_JOBS)
  await fleet.judge()
}

describe.each(SERVER_KINDS)('on $name', PATIENT, ({ missing, defaultTimeoutMs, setStage }) => {
  if (missing() !== '') return test.skip(missing(), () => undefined)

  describe.concurrent('connections that drop', () => {
    test('lose nothing if the network cuts them', async (context) => {
      const { fleet, proxy } = await setStage(context)
      await breakRepeatedly(fleet, context, 'connections cut', () => proxy.cutAll())
    })

    test('lose nothing if the server ends them', async (context) => {
      const { fleet, endAll } = await setStage(context)
      await breakRepeatedly(fleet, context, 'connections ended by the server', async () =>
        expect(await endAll()).toBeGreaterThan(0),
      )
    })
  })

  describe.concurrent('connections that fall silent', () => {
    test.for([
      { name: 'longer than a statement may take', timeoutMs: 1_000 },
      // The worker has to be back long before the default timeout.
      { name: 'shorter than the default timeout of a statement', timeoutMs: defaultTimeoutMs },
    ])('are replaced: $name', async ({ timeoutMs }, context) => {
      const { fleet, proxy } = await setStage(context, timeoutMs)
      fleet.down()
      proxy.mode = 'silent'
      expect(await fleet.enqueueInVain()).toMatchObject({ code: 'HF_STORE_UNREACHABLE' })
      // The connection that was opened last, while nobody answers, is the last one to come back.
      const { accepted } = proxy
      await proxy.changed.until(() => proxy.accepted > accepted)
      proxy.mode = 'pass'
      await expectRecovery(fleet, context)
    })

    test('are replaced if the server was there all the time (half-open connections)', async (context) => {
      const { fleet, proxy } = await setStage(context, defaultTimeoutMs)
      fleet.down()
      // Existing connections never speak again and are not even closed; new ones work.
      proxy.mode = 'silent'
      proxy.mode = 'pass'
      await expectRecovery(fleet, context)
    })
  })

  test('without a listener, jobs are found by polling until it is back', async (context) => {
    const { fleet, proxy, endListeners } = await setStage(context)
    const isWoken = (node: string): boolean => fleet.takeHints(node) > 0
    expect(fleet.workers.filter(isWoken)).toEqual(fleet.workers)
    fleet.fault('listening connections ended')
    // Other connections stay, but no listener comes back.
    proxy.mode = 'refuse'
    expect(await endListeners()).toBeGreaterThanOrEqual(fleet.workers.length)
    // Wake-ups that were sent before may still arrive.
    do await fleet.progress(10)
    while (fleet.workers.filter(isWoken).length > 0)
    await fleet.progress(50)
    expect(fleet.workers.filter(isWoken)).toEqual([])
    proxy.mode = 'pass'
    const woken = new Set<string>()
    await fleet.news.until(() => {
      for (const node of fleet.workers.filter(isWoken)) woken.add(node)
      return woken.size === fleet.workers.length
    })
    await fleet.judge()
  })
})
