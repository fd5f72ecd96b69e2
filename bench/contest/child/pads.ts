/** Payloads of a size, of text that does not compress: real ones hardly do, and a row of x would be nothing in a table. */
import { randomBytes } from 'node:crypto'
import type { Payload } from '../protocol.ts'

const VARIANTS = 64
const FRAME_BYTES = JSON.stringify({ pad: '' } satisfies Payload).length
/** Of the time in a payload, about. */
const TIME_BYTES = '"sentMs":12345678.123,'.length

export class Pads {
  readonly #bySize = new Map<number, string[]>()
  #next = 0

  payloads(count: number, bytes: number): Payload[] {
    return Array.from({ length: count }, () => ({ pad: this.one(bytes) }))
  }

  /** One whose wait is measured from now on; of the same size. */
  timed(sentMs: number, bytes: number): Payload {
    const rounded = Math.round(sentMs * 1_000) / 1_000
    return { sentMs: rounded, pad: this.one(bytes - TIME_BYTES) }
  }

  one(bytes: number): string {
    let pads = this.#bySize.get(bytes)
    if (pads === undefined) {
      const length = Math.max(0, bytes - FRAME_BYTES)
      pads = Array.from({ length: VARIANTS }, () => randomBytes(length).toString('base64').slice(0, length))
      this.#bySize.set(bytes, pads)
    }
    return pads[this.#next++ % VARIANTS] as string
  }
}
