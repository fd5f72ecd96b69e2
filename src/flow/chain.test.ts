import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alone } from '../../test/support/virtual.ts'
import { chain } from './chain.ts'

const doNothing = (): void => undefined
const EVENT = z.object({ type: z.string() })

describe('a chain', () => {
  test('asks its processors in order until one handles the job, and gives its result', async () => {
    const { hf, world } = alone()
    const asked: string[] = []
    const job = hf.job({
      name: 'hook',
      input: EVENT,
      run: chain([
        {
          name: 'push',
          run({ input }, pass) {
            asked.push('push')
            return input.type === 'push' ? 'pushed' : pass()
          },
        },
        {
          name: 'pull request',
          async run({ input }, pass) {
            asked.push('pull request')
            return input.type.startsWith('pull_request') ? `looked at ${input.type}` : pass()
          },
        },
      ]),
    })
    await hf.work()
    const opened = await job.enqueue({ type: 'pull_request.opened' })
    expect(await world.run(opened.result())).toBe('looked at pull_request.opened')
    expect(asked).toEqual(['push', 'pull request'])
    const pushed = await job.enqueue({ type: 'push' })
    expect(await world.run(pushed.result())).toBe('pushed')
    expect(asked).toEqual(['push', 'pull request', 'push'])
  })

  test('that nobody handles is a dead letter at once, and its error names who was asked', async () => {
    const { hf, world, told } = alone()
    const nobody = { run: (_context: unknown, pass: () => never) => pass() } as const
    const job = hf.job({
      name: 'hook',
      input: EVENT,
      run: chain([
        { name: 'push', ...nobody },
        { name: 'issues', ...nobody },
      ]),
    })
    await hf.work()
    const { id } = await job.enqueue({ type: 'star' })
    await world.until(() => told.of('job.failed').length === 1)
    expect(told.of('job.failed')[0]).toMatchObject({ final: true, kind: 'permanent' })
    expect(await world.record(id)).toMatchObject({
      state: 'dead',
      error: { message: 'No processor handled this job; tried: push, issues.' },
    })
  })

  test('a processor that fails is retried, and the others are not asked', async () => {
    const { hf, world, told } = alone()
    let later = 0
    let tries = 0
    const job = hf.job({
      name: 'hook',
      run: chain([
        {
          name: 'flaky',
          run() {
            if (++tries === 1) throw new Error('not now')
            return 'done'
          },
        },
        { name: 'later', run: () => void later++ },
      ]),
    })
    await hf.work()
    const handle = await job.enqueue()
    expect(await world.run(handle.result())).toBe('done')
    expect(told.of('job.failed')[0]).toMatchObject({ final: false })
    expect([tries, later]).toEqual([2, 0])
  })

  test.for<[string, unknown]>([
    ['nobody', []],
    ['somebody without a name', [{ run: doNothing }]],
    ['somebody who does nothing', [{ name: 'idle' }]],
    ['two of one name', ['a', 'a'].map((name) => ({ name, run: doNothing }))],
  ])('is refused with %s', ([, processors]) => {
    expect(() => chain(processors as never)).toThrow(expect.objectContaining({ code: 'HF_BAD_JOB' }))
  })
})
