/**
 * Runs `work` on all items, a limited number at a time. The first failure stops it, once the running calls have ended.
 */
export async function eachAtOnce<Item>(
  items: Iterable<Item>,
  atOnce: number,
  work: (item: Item) => Promise<void>,
): Promise<void> {
  // One iterator for all: each takes what comes next.
  const rest = items[Symbol.iterator]()
  let failed: { readonly error: unknown } | undefined
  const turns = async (): Promise<void> => {
    for (let next = rest.next(); next.done !== true && failed === undefined; next = rest.next()) {
      try {
        await work(next.value)
      } catch (error) {
        failed ??= { error }
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, turns))
  if (failed !== undefined) throw failed.error
}
