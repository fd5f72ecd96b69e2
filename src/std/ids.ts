/**
 * UUIDv7 (RFC 9562): sortable by creation time, and strictly increasing within one generator even if the clock stands
 * still or moves back, so that jobs of one producer keep their order on equal ranks.
 */
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

const HEX = Uint8Array.from('0123456789abcdef', (digit) => digit.charCodeAt(0))
const SEQUENCE_END = 0x1000

export function uuidV7Generator(clock: Pick<Clock, 'now'>, random: Random): () => string {
  let lastMs = 0
  let sequence = 0
  let writtenMs = -1
  // Through a buffer, for a string in one piece: every store reads it, and V8 would have to join the pieces then.
  const text = Buffer.alloc(36, '-')
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
    if (lastMs !== writtenMs) {
      writtenMs = lastMs
      const hex = lastMs.toString(16).padStart(12, '0')
      text.write(`${hex.slice(0, 8)}-${hex.slice(8)}`, 'latin1')
    }
    const high = random.uint32()
    const low = random.uint32()
    writeHex4(text, 14, 0x7000 | sequence)
    writeHex4(text, 19, 0x8000 | ((high >>> 16) & 0x3fff))
    writeHex4(text, 24, high)
    writeHex4(text, 28, low >>> 16)
    writeHex4(text, 32, low)
    return text.toString('latin1')
  }
}

/** The lowest four digits. */
function writeHex4(text: Uint8Array, at: number, value: number): void {
  text[at] = HEX[(value >>> 12) & 15] as number
  text[at + 1] = HEX[(value >>> 8) & 15] as number
  text[at + 2] = HEX[(value >>> 4) & 15] as number
  text[at + 3] = HEX[value & 15] as number
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isUuid(text: string): boolean {
  return UUID.test(text)
}
