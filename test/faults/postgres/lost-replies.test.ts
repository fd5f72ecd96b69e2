/** The server executes a request, and its answer is lost with the connection. The history checker judges. */
import { describe, expect, test, type TestContext } from 'vitest'
import { sharedPostgres } from '../../support/servers/database.ts'
import { PATIENT } from '../support/fleet.ts'
import { setStage, type Stage } from './support/stage.ts'

const start = (context: TestContext): Promise<Stage> => setStage(context, { serverUrl: sharedPostgres(18) })

/** Loses replies to the statements of this name, from any client. */
async function loseReplies({ fleet, proxy }: Stage, statement: string, times: number): Promise<void> {
  for (let time = 0; time < times; time++) {
    fleet.fault(`reply lost: ${statement}`)
    await proxy.loseNextReply((sent) => sent.includes(`holdfast.${statement}_`))
    await fleet.progress(5)
  }
}

describe.concurrent('lost answers', PATIENT, () => {
  test('to enqueues make no second job, and no enqueue fails', async (context) => {
    const stage = await start(context)
    await loseReplies(stage, 'enqueue', 6)
    await loseReplies(stage, 'enqueueUnique', 6)
    expect(stage.fleet.refused).toEqual([])
    const { verdict, acked } = await stage.fleet.judge()
    // No enqueue failed, so every job in the store was acknowledged.
    expect(verdict.counted.born).toBe(acked)
    expect(verdict.counted.unknown).toBeGreaterThanOrEqual(12)
  })

  test('to settles and claims write nothing twice, and claimed jobs come back', async (context) => {
    const stage = await start(context)
    await loseReplies(stage, 'cycle', 12)
    const { verdict, events } = await stage.fleet.judge()
    expect(verdict.counted.settlesAlready).toBeGreaterThan(0)
    // Leases that their worker never heard of.
    expect(events.some((event) => event.type === 'move' && event.by === 'release-undelivered')).toBe(true)
  })

  test('to all the rest lose nothing', async (context) => {
    const stage = await start(context)
    for (const statement of ['heartbeat', 'promote', 'lead', 'lockCrashed', 'change', 'change'])
      await loseReplies(stage, statement, 1)
    expect(stage.fleet.refused).toEqual([])
    await stage.fleet.judge()
  })
})
