/** A binary min-heap: what ranks first is on top. */
export class Heap<T> {
  readonly #items: T[] = []
  readonly #before: (a: T, b: T) => boolean

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before
  }

  top(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    const items = this.#items
    let at = items.length
    items.push(item)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent] as T
      if (!this.#before(item, above)) break
      items[at] = above
      at = parent
    }
    items[at] = item
  }

  pop(): T | undefined {
    const items = this.#items
    const top = items[0]
    const last = items.pop()
    if (items.length === 0 || last === undefined) return top
    this.#sink(last)
    return top
  }

  #sink(item: T): void {
    const items = this.#items
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && this.#before(items[child + 1] as T, items[child] as T)) child++
      if (!this.#before(items[child] as T, item)) break
      items[at] = items[child] as T
      at = child
    }
    items[at] = item
  }
}
