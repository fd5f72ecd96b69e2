/**
 * A fleet under a storm of faults, many times over: lines that refuse, hang and lose answers, processes that freeze and
 * die. Whatever happens, each job that was acknowledged ends, once, as its handler said.
 */
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { seededRandom } from '../std/random.ts'
import {
  busy,
  refused,
  replyBroken,
  replyLost,
  requestLost,
  VirtualWorld,
  type Process,
} from '../../test/support/virtual.ts'

const FAULTS = [refused, requestLost, replyBroken, replyLost]
const SEEDS = Array.from({ length: Number(process.env['HOLDFAST_CHAOS_SEEDS'] ?? 12) }, (_, n) => n + 1)
const input = z.object({ ms: z.number(), failures: z.number() })
const definition = { name: 'job', input, retry: { attempts: 5, crashes: 50, maxDelay: '10s' } } as const

class Storm {
  readonly world: VirtualWorld
  readonly random: ReturnType<typeof seededRandom>
  readonly everybody: Process<'default'>[] = []
  #up: Process<'default'>[] = []
  readonly ends = new Map<string, string[]>()

  constructor(seed: number) {
    this.world = new VirtualWorld(seed)
    this.random = seededRandom(seed * 7_919)
  }

  chance(of: number): boolean {
    return this.random.float() < of
  }

  async join(): Promise<void> {
    const process = this.world.process()
    process.hf.job({
      ...definition,
      async run({ input: { ms, failures }, job, signal, progress }) {
        expect(job.attempt).toBeLessThanOrEqual(job.maxAttempts)
        progress(1)
        await busy(process.clock, ms, signal)
        if (job.attempt <= failures) throw new Error(`failure ${job.attempt}`)
        return job.attempt
      },
    })
    this.#listen(process)
    await this.world.run(process.hf.work({ concurrency: 4, lease: '6s' }))
    this.everybody.push(process)
    this.#up.push(process)
  }

  #listen({ hf }: Process<'default'>): void {
    const end = (id: string, how: string): void => void this.ends.set(id, [...(this.ends.get(id) ?? []), how])
    hf.on('job.completed', ({ id }) => end(id, 'completed'))
    hf.on('job.failed', ({ id, final }) => {
      if (final) end(id, 'dead')
    })
  }

  async blow(): Promise<void> {
    for (const process of this.#up) {
      if (this.chance(0.3)) process.line.fail(() => this.chance(0.3), FAULTS[this.random.uint32() % 4]!, 5)
      if (this.chance(0.1)) process.line.breakDown(FAULTS[this.random.uint32() % 2])
      if (this.chance(0.3)) process.line.mend()
      process.line.losesHints = this.chance(0.3)
    }
    const victim = this.#up[this.random.uint32() % this.#up.length]!
    const fate = this.random.float()
    if (fate < 0.1) {
      this.#up = this.#up.filter((process) => process !== victim)
      victim.kill()
      await this.join()
    } else if (fate < 0.2) {
      victim.freeze()
      await this.world.advance(this.random.float() * 20_000)
      victim.thaw()
    }
    await this.world.advance(this.random.float() * 3_000)
  }

  calm(): void {
    for (const { line } of this.#up) {
      line.mend()
      line.losesHints = false
    }
  }
}

describe('a storm of faults', () => {
  test.each(SEEDS)('ends every job once, as its handler said (seed %i)', async (seed) => {
    const storm = new Storm(seed)
    const { world } = storm
    for (let n = 0; n < 3; n++) await storm.join()
    const client = world.process().hf.contract(definition)
    const inputs = Array.from({ length: 60 }, () => ({
      ms: Math.round(storm.random.float() ** 3 * 8_000),
      failures: storm.chance(0.3) ? storm.random.uint32() % 6 : 0,
    }))
    const ids: string[] = []
    for (const one of inputs) {
      if (storm.chance(0.3)) await storm.blow()
      ids.push((await client.enqueue(one)).id)
    }
    for (let n = 0; n < 20; n++) await storm.blow()
    storm.calm()
    const counts = async (): Promise<number> => {
      const { completed = 0, dead = 0 } = await world.counts()
      return completed + dead
    }
    for (let minutes = 0; minutes < 30 && (await counts()) < ids.length; minutes++)
      await world.advance(60_000)

    for (const [at, id] of ids.entries()) {
      const { failures } = inputs[at]!
      const record = await world.record(id)
      const due =
        failures >= 5 ? { state: 'dead', attempt: 5 } : { state: 'completed', attempt: failures + 1 }
      expect(record, `${JSON.stringify(inputs[at])} ended as ${JSON.stringify(record)}`).toMatchObject(due)
      // The event of an end may die with its process, but nobody tells of two.
      expect((storm.ends.get(id) ?? []).length).toBeLessThanOrEqual(1)
    }
  })
})
