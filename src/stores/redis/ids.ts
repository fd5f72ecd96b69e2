/**
 * Job ids as Redis holds them: the 128 bits of the UUID in 22 characters of an alphabet that is sorted, so that packed
 * ids sort as the ids do. Redis holds each id in two places, so 14 bytes less matter. Each job is converted twice, so
 * this uses tables of character codes.
 */
import type { JobId } from '../../job/ids.ts'
import { isUuid } from '../../std/ids.ts'
import { brokenAnswer } from '../broken-answer.ts'

declare const packed: unique symbol
/** A job's id in 22 characters. */
export type PackedId = string & { readonly [packed]: true }

export const PACKED_CHARS = 22
const NONE = 255

/** In ASCII order. */
const ALPHABET = codesOf('-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz')
const HEX = codesOf('0123456789abcdef')
const ALPHABET_VALUES = valuesOf(ALPHABET)
const HEX_VALUES = valuesOf(HEX)
for (const [value, code] of codesOf('0123456789ABCDEF').entries()) HEX_VALUES[code] = value
// Stands in for a digit after the last one.
HEX_VALUES['-'.charCodeAt(0)] = 0

/** Positions of the 32 digits in a UUID, and one that is not a digit: three digits make two characters. */
const PLACES = Uint8Array.from([
  ...Array.from({ length: 36 }, (_, place) => place).filter((place) => ![8, 13, 18, 23].includes(place)),
  8,
])
const short = Buffer.alloc(PACKED_CHARS)
const long = Buffer.alloc(36, '-')

/** The id must be a UUID: ours are. */
export function packId(id: JobId): PackedId {
  for (let at = 0, digit = 0; at < PACKED_CHARS; at += 2, digit += 3) {
    const bits = (digitAt(id, digit) << 8) | (digitAt(id, digit + 1) << 4) | digitAt(id, digit + 2)
    short[at] = ALPHABET[bits >> 6] as number
    short[at + 1] = ALPHABET[bits & 63] as number
  }
  return short.toString('latin1') as PackedId
}

/** Null for a text that is not an id. */
export function packKnown(id: JobId): PackedId | null {
  return isUuid(id) ? packId(id) : null
}

export function unpackId(id: string): JobId {
  for (let at = 0, digit = 0; at < PACKED_CHARS; at += 2, digit += 3) {
    const high = ALPHABET_VALUES[id.charCodeAt(at)] ?? NONE
    const low = ALPHABET_VALUES[id.charCodeAt(at + 1)] ?? NONE
    if (high === NONE || low === NONE) throw brokenAnswer('redis', `${JSON.stringify(id)} is not a job's id`)
    const bits = (high << 6) | low
    long[PLACES[digit] as number] = HEX[bits >> 8] as number
    long[PLACES[digit + 1] as number] = HEX[(bits >> 4) & 15] as number
    if (digit < 30) long[PLACES[digit + 2] as number] = HEX[bits & 15] as number
  }
  return long.toString('latin1') as JobId
}

function digitAt(id: string, digit: number): number {
  return HEX_VALUES[id.charCodeAt(PLACES[digit] as number)] as number
}

function codesOf(characters: string): Uint8Array {
  return Uint8Array.from(characters, (character) => character.charCodeAt(0))
}

function valuesOf(codes: Uint8Array): Uint8Array {
  const values = new Uint8Array(128).fill(NONE)
  for (const [value, code] of codes.entries()) values[code] = value
  return values
}
