/** Payloads of a size, of text that does not compress: real ones hardly do, and a row of x would be nothing in a table. */
import { randomBytes } from 'node:crypto'
import type { Payload } from '../protocol.ts'

const VARIANTS = 64
const FRAME_BYTES = JSON.stringify({ pad: '' } satisfies Payload).length

export class Pads {
  readonly #bySize = new Map<number, string[]>()
  #next = 0

  payloads(count: number, bytes: number): Payload[] {
    return Array.from({ length: count }, () => ({ pad: this.one(bytes) }))
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
