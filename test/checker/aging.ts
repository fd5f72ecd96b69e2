/** A first-in-first-out list of what is to be forgotten when it is old enough, so that memory has a bound. */
export class Aging<T> {
  #items: { readonly t: number; readonly item: T }[] = []
  #head = 0

  add(t: number, item: T): void {
    this.#items.push({ t, item })
  }

  /** Takes out what was added before `t`, oldest first. */
  takeBefore(t: number, forget: (item: T) => void): void {
    let oldest = this.#items[this.#head]
    while (oldest !== undefined && oldest.t < t) {
      forget(oldest.item)
      oldest = this.#items[++this.#head]
    }
    // Shifting an array costs its length; cutting it at half its length costs one step an item.
    if (this.#head > 1_024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
  }
}
