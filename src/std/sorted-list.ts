/**
 * A list that stays sorted: chunks of at most 512 items, so that inserting, removing and taking from the front cost a
 * binary search and a short move however long the list is. A binary heap was rejected: it cannot remove from the
 * middle or be read in order, and at a million items each pop touches twenty cache lines.
 * Items must be distinct under `compare`.
 */
const CHUNK = 512

export class SortedList<T> {
  readonly #compare: (a: T, b: T) => number
  #chunks: T[][] = []
  /** Items already taken from the front of the first chunk: shifting one by one would move the rest each time. */
  #taken = 0
  #size = 0

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#size
  }

  first(): T | undefined {
    return this.#chunks[0]?.[this.#taken]
  }

  add(item: T): void {
    this.#size++
    const last = this.#chunks.at(-1)
    // By far the most common case: it ranks after all others.
    if (last === undefined || this.#compare(last[last.length - 1] as T, item) < 0) {
      if (last === undefined || last.length >= CHUNK) this.#chunks.push([item])
      else last.push(item)
      return
    }
    const at = this.#chunkFor(item)
    const chunk = this.#settledChunk(at)
    chunk.splice(this.#indexIn(chunk, item), 0, item)
    if (chunk.length > CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK / 2))
  }

  /** Removes the item that compares equal; false if there is none. */
  delete(item: T): boolean {
    if (this.#size === 0) return false
    const at = this.#chunkFor(item)
    const chunk = this.#settledChunk(at)
    const index = this.#indexIn(chunk, item)
    const found = chunk[index]
    if (found === undefined || this.#compare(found, item) !== 0) return false
    chunk.splice(index, 1)
    if (chunk.length === 0) this.#chunks.splice(at, 1)
    this.#size--
    return true
  }

  /** Removes and returns the first item. */
  takeFirst(): T | undefined {
    const chunk = this.#chunks[0]
    if (chunk === undefined) return undefined
    const item = chunk[this.#taken]
    // Lets the item be collected before its whole chunk is used up.
    chunk[this.#taken++] = undefined as T
    this.#size--
    if (this.#taken === chunk.length) {
      this.#chunks.shift()
      this.#taken = 0
    }
    return item
  }

  /** In order, from the first item that is not before `from` (which need not be in the list). */
  *from(from?: T): Generator<T> {
    let at = 0
    let index = this.#taken
    if (from !== undefined && this.#size > 0) {
      at = this.#chunkFor(from)
      index = this.#indexIn(this.#settledChunk(at), from)
    }
    for (; at < this.#chunks.length; at++, index = 0) {
      const chunk = this.#chunks[at] as T[]
      for (; index < chunk.length; index++) yield chunk[index] as T
    }
  }

  [Symbol.iterator](): Generator<T> {
    return this.from()
  }

  /** The first chunk whose last item is not before `item`, or the last chunk. */
  #chunkFor(item: T): number {
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high) >>> 1
      const chunk = this.#chunks[middle] as T[]
      if (this.#compare(chunk[chunk.length - 1] as T, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** The chunk without the items taken from its front. */
  #settledChunk(at: number): T[] {
    const chunk = this.#chunks[at] as T[]
    if (at === 0 && this.#taken > 0) {
      chunk.splice(0, this.#taken)
      this.#taken = 0
    }
    return chunk
  }

  #indexIn(chunk: readonly T[], item: T): number {
    let low = 0
    let high = chunk.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(chunk[middle] as T, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
