/**
 * UUIDv7 (RFC 9562): sortable by creation time, and strictly increasing within one generator even if the clock stands
 * still or moves back, so that jobs of one producer keep their order on equal ranks.
 */
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

/** All hexadecimal numbers with this many digits. */
const HEX_2 = hexNumbers(2)
const HEX_3 = hexNumbers(3)
const SEQUENCE_END = 0x1000

export function uuidV7Generator(clock: Pick<Clock, 'now'>, random: Random): () => string {
  let lastMs = 0
  let sequence = 0
  let prefixMs = -1
  let prefix = ''
  return () => {
    // A virtual clock may be between two milliseconds.
    const nowMs = Math.floor(clock.now())
    if (nowMs > lastMs) {
      lastMs = nowMs
      // Starts low in the range, so that thousands of ids fit into one millisecond.
      sequence = random.uint32() & 0x3ff
    } else if (++sequence === SEQUENCE_END) {
      lastMs++
      sequence = 0
    }
    if (lastMs !== prefixMs) {
      prefixMs = lastMs
      const hex = lastMs.toString(16).padStart(12, '0')
      prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`
    }
    const high = random.uint32()
    const low = random.uint32()
    // In parts of at most 12 characters, which V8 copies: longer ones would become a tree of pieces.
    const middle = `${hex3(sequence)}-${hex2(0x80 | ((high >>> 24) & 0x3f))}${hex2(high >>> 16)}-`
    const end = hex3(high >>> 4) + hex3((high << 8) | (low >>> 24)) + hex3(low >>> 12) + hex3(low)
    return prefix + middle + end
  }
}

function hex2(value: number): string {
  return HEX_2[value & 0xff] as string
}

function hex3(value: number): string {
  return HEX_3[value & 0xfff] as string
}

function hexNumbers(digits: number): readonly string[] {
  return Array.from({ length: 16 ** digits }, (_, value) => value.toString(16).padStart(digits, '0'))
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(text: string): boolean {
  return UUID.test(text)
}
