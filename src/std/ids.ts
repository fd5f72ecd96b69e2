/**
 * UUIDv7 (RFC 9562): sortable by the time they were made, and strictly increasing within one generator even when the
 * clock stands still or goes back, so that jobs of one producer keep their order on equal ranks.
 */
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const SEQUENCE_END = 0x1000

export function uuidV7Generator(clock: Pick<Clock, 'now'>, random: Random): () => string {
  let lastMs = 0
  let sequence = 0
  let prefixMs = -1
  let prefix = ''
  return () => {
    // A virtual clock may stand between two milliseconds.
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
    return (
      prefix +
      hexDigits(sequence, 3) +
      '-' +
      hexByte(0x80 | ((high >>> 24) & 0x3f)) +
      hexByte(high >>> 16) +
      '-' +
      hexByte(high >>> 8) +
      hexByte(high) +
      hexByte(low >>> 24) +
      hexByte(low >>> 16) +
      hexByte(low >>> 8) +
      hexByte(low)
    )
  }
}

function hexByte(value: number): string {
  return HEX[value & 0xff] as string
}

function hexDigits(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0')
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(text: string): boolean {
  return UUID.test(text)
}
