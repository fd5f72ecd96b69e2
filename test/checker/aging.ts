/** A first-in-first-out list of what is to be forgotten when it is old enough, so that memory has a bound. */
export class Aging<T> {
  // Two arrays rather than one of pairs: an object less for each item, of which there are millions.
  #times: number[] = []
  #items: T[] = []
  #head = 0

  add(t: number, item: T): void {
    this.#times.push(t)
    this.#items.push(item)
  }

  /** Takes out what was added before `t`, oldest first. */
  takeBefore(t: number, forget: (item: T) => void): void {
    while (this.#head < this.#times.length && (this.#times[this.#head] as number) < t) {
      forget(this.#items[this.#head] as T)
      this.#head++
    }
    // Shifting an array costs its length; cutting it at half its length costs one step an item.
    if (this.#head > 1_024 && this.#head * 2 > this.#items.length) {
      this.#times = this.#times.slice(this.#head)
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
  }
}
