/**
 * How values of results are parsed, the same for each driver, whatever a user has set in the driver's global tables:
 * numbers, booleans, parsed JSON, lists of those, and text for everything else.
 */

export type ParseValue = (text: string) => unknown

const asText: ParseValue = (text) => text
const asBoolean: ParseValue = (text) => text === 't'
const asJson: ParseValue = (text) => JSON.parse(text) as unknown

/** By oid, see pg_type; the second number is the oid of the type's array. */
const TYPES: readonly (readonly [oid: number, arrayOid: number, parse: ParseValue])[] = [
  [16, 1000, asBoolean],
  // bigint and numeric, too: all our counts and times are far below 2^53.
  [20, 1016, Number],
  [21, 1005, Number],
  [23, 1007, Number],
  [26, 1028, Number],
  [700, 1021, Number],
  [701, 1022, Number],
  [1700, 1231, Number],
  [114, 199, asJson],
  [3802, 3807, asJson],
  [25, 1009, asText],
  [1042, 1014, asText],
  [1043, 1015, asText],
  [2950, 2951, asText],
]

const PARSERS = new Map<number, ParseValue>(
  TYPES.flatMap(([oid, arrayOid, parse]) => [
    [oid, parse] as const,
    [arrayOid, (text: string) => parseArray(text, parse)] as const,
  ]),
)

export function parserOf(oid: number): ParseValue {
  return PARSERS.get(oid) ?? asText
}

/** An array of one dimension in the server's text form: `{1,NULL,"a \"b\""}`. */
export function parseArray(text: string, parseItem: ParseValue): unknown[] {
  const items: unknown[] = []
  const end = text.length - 1
  for (let at = 1; at < end; at++) {
    if (text[at] === '"') {
      const close = closingQuote(text, at + 1)
      items.push(parseItem(unescape(text.slice(at + 1, close))))
      at = close + 1
    } else {
      const comma = text.indexOf(',', at)
      const stop = comma === -1 ? end : comma
      const item = text.slice(at, stop)
      items.push(item === 'NULL' ? null : parseItem(item))
      at = stop
    }
  }
  return items
}

function closingQuote(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at
}

function unescape(text: string): string {
  return text.includes('\\') ? text.replaceAll(/\\(.)/gs, '$1') : text
}
