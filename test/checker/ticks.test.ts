import { describe, expect, test } from 'vitest'
import { broken } from './testing/broken.ts'
import { enqueued, Story } from './testing/story.ts'

const EVERY_MS = 1_000

/** One tick, as reported by a store that fires everything it is asked to. */
function fire(story: Story, job: string, tick: number, everyMs: number | null = EVERY_MS): Story {
  const op = story.invoke({ kind: 'fire', schedule: 'nightly', tick, everyMs, job: enqueued(job) })
  story.birth(job)
  return story.answer(op, { kind: 'fire', outcome: 'fired' })
}

describe('S8: one job for each tick', () => {
  test('ticks in order, each once', () => {
    const story = new Story()
    fire(fire(fire(story, 'a', 1_000), 'b', 2_000), 'c', 3_000)
    expect(broken(story.end())).toEqual([])
  })

  test('a tick that is asked for again and refused', () => {
    const story = fire(new Story(), 'a', 1_000)
    const op = story.invoke({
      kind: 'fire',
      schedule: 'nightly',
      tick: 1_000,
      everyMs: EVERY_MS,
      job: enqueued('a'),
    })
    story.answer(op, { kind: 'fire', outcome: 'already' })
    expect(broken(story.end())).toEqual([])
  })

  test('a tick that is fired twice, under another id', () => {
    const story = fire(fire(new Story(), 'a', 1_000), 'b', 1_000)
    expect(broken(story.end())).toEqual(['S8 b'])
  })

  test('a tick that comes after a later one', () => {
    const story = fire(fire(new Story(), 'a', 2_000, null), 'b', 1_000, null)
    expect(broken(story.end())).toEqual(['S8 b'])
  })

  test('ticks that are left out, where none may be', () => {
    expect(broken(fire(fire(new Story(), 'a', 1_000), 'b', 3_000).end())).toEqual(['S8 b'])
    expect(broken(fire(fire(new Story(), 'a', 1_000, null), 'b', 3_000, null).end())).toEqual([])
  })

  test('a tick that was answered as fired, and whose job is not there', () => {
    const story = new Story()
    const op = story.invoke({
      kind: 'fire',
      schedule: 'nightly',
      tick: 1_000,
      everyMs: EVERY_MS,
      job: enqueued('a'),
    })
    story.answer(op, { kind: 'fire', outcome: 'fired' })
    expect(broken(story.end())).toEqual(['S8 a'])
  })
})
