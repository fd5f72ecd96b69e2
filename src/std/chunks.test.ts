import { describe, expect, test } from 'vitest'
import { chunksOf } from './chunks.ts'

async function collect<T>(chunks: AsyncIterable<T[]>): Promise<T[][]> {
  const found: T[][] = []
  for await (const chunk of chunks) found.push(chunk)
  return found
}

describe('chunks', () => {
  test('are full but for the last, whatever the values come from', async () => {
    async function* later(): AsyncGenerator<number> {
      for (let n = 1; n <= 5; n++) yield await Promise.resolve(n)
    }
    const expected = [[1, 2], [3, 4], [5]]
    expect(await collect(chunksOf([1, 2, 3, 4, 5], 2))).toEqual(expected)
    expect(await collect(chunksOf([1, 2, Promise.resolve(3), 4, 5], 2))).toEqual(expected)
    expect(await collect(chunksOf(later(), 2))).toEqual(expected)
    expect(await collect(chunksOf([], 2))).toEqual([])
  })

  test('of values that break off give what came before first', async () => {
    function* broken(): Generator<number> {
      yield 1
      throw new Error('torn')
    }
    const seen: number[][] = []
    const reading = (async () => {
      for await (const chunk of chunksOf(broken(), 2)) seen.push(chunk)
    })()
    await expect(reading).rejects.toThrow('torn')
    expect(seen).toEqual([[1]])
  })
})
