import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { seededRandom } from './random.ts'
import { SortedList } from './sorted-list.ts'

const ascending = (a: number, b: number): number => a - b

/** The same list, done the plain way. */
class Model {
  items: number[] = []

  add(item: number): void {
    this.items.push(item)
    this.items.sort(ascending)
  }

  from(from: number): number[] {
    return this.items.filter((item) => item >= from)
  }
}

interface Real {
  list: SortedList<number>
}
type Step = fc.Command<Model, Real>

/** Everything that can be seen from outside is equal. */
function compare(model: Model, { list }: Real): void {
  expect(list.size).toBe(model.items.length)
  expect(list.first()).toBe(model.items[0])
}

const step = (name: string, run: (model: Model, real: Real) => void): Step => ({
  check: () => true,
  run: (model, real) => {
    run(model, real)
    compare(model, real)
  },
  toString: () => name,
})

const add = (item: number): Step => ({
  check: (model) => !model.items.includes(item),
  run: (model, real) => {
    model.add(item)
    real.list.add(item)
    compare(model, real)
  },
  toString: () => `add(${item})`,
})

/** Many neighbours at once, so that chunks fill, split and empty within a few commands. */
const addMany = (start: number, count: number, stride: number): Step =>
  step(`addMany(${start}, ${count}, ${stride})`, (model, { list }) => {
    const known = new Set(model.items)
    for (let index = 0; index < count; index++) {
      const item = start + index * stride
      if (known.has(item)) continue
      model.items.push(item)
      list.add(item)
    }
    model.items.sort(ascending)
  })

const remove = (item: number): Step =>
  step(`delete(${item})`, (model, { list }) => {
    const held = model.items.includes(item)
    expect(list.delete(item)).toBe(held)
    if (held) model.items.splice(model.items.indexOf(item), 1)
  })

const removeRange = (at: number, count: number): Step =>
  step(`deleteRange(${at}, ${count})`, (model, { list }) => {
    for (const item of model.items.splice(at % Math.max(1, model.items.length), count)) {
      expect(list.delete(item)).toBe(true)
    }
  })

const takeFirst = (count: number): Step =>
  step(`takeFirst × ${count}`, (model, { list }) => {
    for (let taken = 0; taken < count; taken++) expect(list.takeFirst()).toBe(model.items.shift())
  })

const from = (item: number): Step =>
  step(`from(${item})`, (model, { list }) => expect([...list.from(item)]).toEqual(model.from(item)))

const iterate = step('iterate', (model, { list }) => expect([...list]).toEqual(model.items))

describe('a sorted list', () => {
  test('behaves as a sorted array does, whatever is done to it', () => {
    const item = fc.integer({ min: -3_000, max: 3_000 })
    const commands = fc.commands(
      [
        item.map(add),
        fc
          .tuple(item, fc.integer({ min: 1, max: 1_500 }), fc.constantFrom(-1, 1, 2, -3))
          .map((args) => addMany(...args)),
        item.map(remove),
        fc.tuple(fc.nat(6_000), fc.nat(1_200)).map((args) => removeRange(...args)),
        fc.integer({ min: 1, max: 700 }).map(takeFirst),
        item.map(from),
        fc.constant(iterate),
      ],
      { maxCommands: 40 },
    )
    fc.assert(
      fc.property(commands, (steps) => {
        fc.modelRun(() => ({ model: new Model(), real: { list: new SortedList(ascending) } }), steps)
      }),
      { numRuns: 150 },
    )
  })

  test('sorts thousands of items that come in any order', () => {
    const random = seededRandom(1)
    const items = Array.from({ length: 20_000 }, (_, index) => ({ rank: random.uint32(), index }))
    const list = new SortedList<{ rank: number; index: number }>(
      (a, b) => a.rank - b.rank || a.index - b.index,
    )
    for (const item of items) list.add(item)
    const sorted = items.toSorted((a, b) => a.rank - b.rank || a.index - b.index)
    expect(list.size).toBe(20_000)
    expect([...list]).toEqual(sorted)
    expect(Array.from(items, () => list.takeFirst())).toEqual(sorted)
    expect(list.size).toBe(0)
  })

  test.each([
    ['rising', (index: number) => index],
    ['falling', (index: number) => -index],
    ['alternating', (index: number) => (index % 2 === 0 ? index : -index)],
  ])('takes %s items and gives each back once, in order', (_, itemAt) => {
    const items = Array.from({ length: 5_000 }, (__, index) => itemAt(index))
    const list = new SortedList<number>(ascending)
    for (const item of items) list.add(item)
    expect(Array.from(items, () => list.takeFirst())).toEqual(items.toSorted(ascending))
    expect(list.takeFirst()).toBeUndefined()
  })

  test('can be emptied from the middle and used again', () => {
    const list = new SortedList<number>(ascending)
    for (let round = 0; round < 3; round++) {
      for (let item = 0; item < 2_000; item++) list.add(item)
      for (let item = 500; item < 2_000; item++) expect(list.delete(item)).toBe(true)
      for (let item = 0; item < 500; item++) expect(list.delete(item)).toBe(true)
      expect([list.size, list.first(), [...list]]).toEqual([0, undefined, []])
    }
  })

  test('does not give back or delete again what was taken', () => {
    const list = new SortedList<number>(ascending)
    for (let item = 0; item < 10; item++) list.add(item)
    list.takeFirst()
    list.takeFirst()
    expect(list.delete(0)).toBe(false)
    expect([...list.from(-5)]).toEqual([2, 3, 4, 5, 6, 7, 8, 9])
    list.add(1)
    expect(list.first()).toBe(1)
  })

  test('finds the item by the order, not by identity', () => {
    const list = new SortedList<{ key: number; note: string }>((a, b) => a.key - b.key)
    list.add({ key: 1, note: 'held' })
    expect(list.delete({ key: 1, note: 'asked for' })).toBe(true)
    expect(list.size).toBe(0)
  })

  test('is empty at first', () => {
    const list = new SortedList<number>(ascending)
    expect([list.size, list.first(), list.takeFirst(), list.delete(1), [...list.from(1)]]).toEqual([
      0,
      undefined,
      undefined,
      false,
      [],
    ])
  })
})
