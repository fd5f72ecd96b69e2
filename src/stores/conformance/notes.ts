/** Notes: small texts that all processes share, some of them for a time. */
import assert from 'node:assert/strict'
import type { Topic } from './suite.ts'
import { MINUTE_MS } from './support.ts'

export const notesTopic: Topic = {
  name: 'notes',
  tests: {
    'notes of a kind are listed in order of id, as they were put': async ({ store: { notes } }) => {
      assert.deepEqual(await notes.list('worker'), [])
      const text = '{"quotes":"\\"","emoji":"🛠️"}\n'
      await notes.put('worker', 'b', text, null)
      await notes.put('worker', 'a.*:/@ ü', '', null)
      await notes.put('subscriber', 'c', 'other', null)
      assert.deepEqual(await notes.list('worker'), [
        { id: 'a.*:/@ ü', text: '' },
        { id: 'b', text },
      ])
      assert.deepEqual(await notes.list('subscriber'), [{ id: 'c', text: 'other' }])
    },
    'a note that is put again replaces the one before': async ({ store: { notes } }) => {
      await notes.put('worker', 'a', 'first', null)
      await notes.put('worker', 'a', 'second', null)
      assert.deepEqual(await notes.list('worker'), [{ id: 'a', text: 'second' }])
    },
    'a removed note is gone, and removing it again says so': async ({ store: { notes } }) => {
      await notes.put('worker', 'a', 'text', null)
      await notes.put('subscriber', 'a', 'text', null)
      assert.equal(await notes.put('worker', 'a', null, null), true)
      assert.equal(await notes.put('worker', 'a', null, null), false)
      assert.deepEqual(await notes.list('worker'), [])
      assert.equal((await notes.list('subscriber')).length, 1)
    },
    'a note is gone when its time is over, unless it is put again': async (harness) => {
      const { notes } = harness.store
      await notes.put('worker', 'short', 'text', MINUTE_MS)
      await notes.put('worker', 'renewed', 'text', MINUTE_MS)
      await notes.put('worker', 'kept', 'text', MINUTE_MS)
      await notes.put('worker', 'kept', 'text', null)
      await harness.advance(MINUTE_MS / 2)
      assert.equal((await notes.list('worker')).length, 3)
      await notes.put('worker', 'renewed', 'again', MINUTE_MS)
      await harness.advance(MINUTE_MS / 2 + 1_000)
      const ids = (await notes.list('worker')).map(({ id }) => id)
      assert.deepEqual(ids, ['kept', 'renewed'])
      assert.equal(await notes.put('worker', 'short', null, null), false, 'what is gone cannot be removed')
    },
  },
}
