/** The word that somebody probably meant who wrote another one. */

/** Null if no word is near: a wrong suggestion costs more time than none. */
export function nearest(written: string, words: readonly string[]): string | null {
  let best: string | null = null
  let bestDistance = Infinity
  for (const word of words) {
    const distance = editDistance(written.toLowerCase(), word.toLowerCase())
    const near = Math.max(1, Math.floor(Math.max(written.length, word.length) * 0.4))
    // All of a word of one or two letters can differ and still be near: `at` is not what `id` meant.
    if (distance > near || distance >= Math.min(written.length, word.length)) continue
    if (distance < bestDistance) [best, bestDistance] = [word, distance]
  }
  return best
}

/**
 * Letters to insert, delete, replace or swap with their neighbour. Swaps count as one, because they are what a hurried
 * hand does: `drian` is one step from `drain`.
 */
function editDistance(a: string, b: string): number {
  // Typos are short. A text of a megabyte as a name must not take a minute.
  if (Math.abs(a.length - b.length) > b.length) return Infinity
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(
        at(last, j) + 1,
        at(row, j - 1) + 1,
        at(last, j - 1) + (isSame ? 0 : 1),
        isSwap ? at(before, j - 2) + 1 : Infinity,
      )
    }
    before = last
    last = row
  }
  return at(last, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity
}
