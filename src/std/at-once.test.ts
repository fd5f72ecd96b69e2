import { expect, test } from 'vitest'
import { deferred, letPromisesRun } from '../../test/support/virtual.ts'
import { eachAtOnce } from './at-once.ts'

test('works on all items, and on no more than so many at a time', async () => {
  let now = 0
  let most = 0
  const done: number[] = []
  await eachAtOnce([1, 2, 3, 4, 5], 2, async (item) => {
    most = Math.max(most, ++now)
    await letPromisesRun()
    now--
    done.push(item)
  })
  expect(done).toEqual([1, 2, 3, 4, 5])
  expect(most).toBe(2)
})

test('a failure ends it once what is under way has ended', async () => {
  const slow = deferred()
  const begun: number[] = []
  const work = eachAtOnce([1, 2, 3, 4], 2, async (item) => {
    begun.push(item)
    if (item === 1) throw new Error('no')
    await slow.promise
  })
  let over = false
  const ended = work.catch((error: unknown) => {
    over = true
    return error
  })
  await letPromisesRun()
  expect(over).toBe(false)
  slow.resolve()
  expect(await ended).toMatchObject({ message: 'no' })
  expect(begun).toEqual([1, 2])
})
