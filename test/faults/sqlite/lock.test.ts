/** A process that stops in the middle of a write transaction holds up those who write, and nobody else. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HoldfastError } from '../../../src/errors.ts'
import { Member } from './support/member.ts'
import { folderForStores, openStore } from './support/place.ts'

const directory = join(folderForStores(), 'store')
let stopped: Member
let writer: Member

beforeAll(async () => {
  writer = await Member.withStore(directory)
  stopped = Member.start()
  await stopped.do('lock', directory)
  stopped.signal('SIGSTOP')
})

afterAll(() => Member.endAll())

describe('a process that was stopped while it wrote', () => {
  test('does not keep others from opening and reading the store', async () => {
    const store = await openStore(directory)
    const begun = performance.now()
    const queues = await store.admin.queues()
    expect(queues).toEqual([])
    expect(performance.now() - begun).toBeLessThan(2_000)
    await store.close()
  })

  test('is named, with its state, by a write that waited in vain', async () => {
    const store = await openStore(directory)
    const begun = performance.now()
    const error = await store.admin.setPaused('default', false).catch((thrown: unknown) => thrown)
    // A caller gives the first try three seconds.
    expect(performance.now() - begun).toBeLessThan(3_000)
    await store.close()
    expect(error).toBeInstanceOf(HoldfastError)
    const { code, message } = error as HoldfastError
    expect(code).toBe('HF_STORE_UNREACHABLE')
    expect(message).toContain(`process ${stopped.pid} `)
    expect(message).toContain(', stopped)')
  })

  test('is named by an enqueue that fails at its deadline', async () => {
    const error = await writer.do('enqueue', 1, {}).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'HF_STORE_UNREACHABLE',
      message: expect.stringMatching(new RegExp(`process ${stopped.pid} .*, stopped\\)`)),
    })
  })

  test('lets everybody write again once it goes on and commits', async () => {
    stopped.signal('SIGCONT')
    await stopped.do('commit')
    const { ids } = await writer.do('enqueue', 1, {})
    const store = await openStore(directory)
    const { jobs } = await store.admin.list({ states: ['ready'], limit: 10, after: null })
    await store.close()
    // As of any call that was given up, the write that failed may have got through.
    expect(jobs.map(({ id }) => id as string)).toEqual(expect.arrayContaining([...ids]))
  })
})
