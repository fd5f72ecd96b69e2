/**
 * Lists as PostgreSQL array literals: `{"a","b\"c",NULL}`. Every driver passes one text per list through untouched;
 * the drivers' own array serialisers differ in what they quote, and cost several times as much.
 */

/** Characters below the space. JSON writes them as \n or \u0007, which an array literal would read as n and u0007. */
const CONTROL = /[^\u0020-\uFFFF]/
const NEEDS_ESCAPE = /["\\]/g

export function textArray(values: readonly (string | null)[]): string {
  // Without control characters JSON quotes exactly as an array literal does (`null` included), and does so natively:
  // 1,000 payloads of 100 B take 0.2 ms and of 1 KB 2.9 ms, against 1.5 and 23 ms by regular expression.
  if (values.every(quotesLikeJson)) return `{${JSON.stringify(values).slice(1, -1)}}`
  const items = values.map((value) =>
    value === null ? 'NULL' : `"${value.replace(NEEDS_ESCAPE, String.raw`\$&`)}"`,
  )
  return `{${items.join(',')}}`
}

function quotesLikeJson(value: string | null): boolean {
  return value === null || (!CONTROL.test(value) && value.isWellFormed())
}

/** Quoted as well, so that the server refuses a text that is not a UUID, and cannot read it as two of them. */
export function uuidArray(values: readonly (string | null)[]): string {
  return textArray(values)
}

/** For smallint[], integer[] and bigint[]. */
export function intArray(values: readonly (number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}

export function boolArray(values: readonly (boolean | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}
