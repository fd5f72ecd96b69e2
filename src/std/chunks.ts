/** Splits any number of values into chunks. If the iterable throws, the values before the error are yielded first. */
export async function* chunksOf<T>(
  values: Iterable<T> | AsyncIterable<T>,
  size: number,
): AsyncGenerator<T[]> {
  let chunk: T[] = []
  try {
    if (Symbol.asyncIterator in values) {
      for await (const value of values) {
        chunk.push(value)
        if (chunk.length === size) {
          yield chunk
          chunk = []
        }
      }
    } else {
      // Like `for await`, but without an await for each of a million plain values.
      for (const value of values) {
        chunk.push(value instanceof Promise ? ((await value) as T) : value)
        if (chunk.length === size) {
          yield chunk
          chunk = []
        }
      }
    }
  } catch (error) {
    if (chunk.length > 0) yield chunk
    throw error
  }
  if (chunk.length > 0) yield chunk
}
