/**
 * Holds the store's own record against the rules of leases that calls alone cannot show where workers are processes of
 * their own: a job is under one lease at a time (S3), tokens only grow (S5), a lease's end is what places its jobs, so that
 * no settle of an older one was accepted (S4), and final is final (S6).
 */
import { PACKED_CHARS, unpackId } from '../../../../src/stores/redis/ids.ts'
import type { Command } from './append-only.ts'

interface Lease {
  readonly ids: readonly string[]
  readonly open: Set<number>
}

export interface FenceReport {
  /** In words. */
  readonly broken: readonly string[]
  readonly granted: number
  readonly settled: number
}

/** `base`: what all keys of the store begin with. */
export function judgeFences(transactions: readonly (readonly Command[])[], base: string): FenceReport {
  const book = new FenceBook(base)
  for (const commands of transactions) book.transaction(commands)
  return book
}

class FenceBook implements FenceReport {
  readonly broken: string[] = []
  granted = 0
  settled = 0
  readonly #base: string
  readonly #leases = new Map<string, Lease>()
  readonly #holders = new Map<string, string>()
  readonly #final = new Set<string>()
  /** Whose lease has ended in the transaction under way. */
  readonly #freed = new Set<string>()
  #lastToken = 0

  constructor(base: string) {
    this.#base = base
  }

  transaction(commands: readonly Command[]): void {
    this.#freed.clear()
    for (const [name, key, ...args] of commands) {
      const where = key?.toString() ?? ''
      if (where.startsWith(this.#base))
        this.#take(name?.toString().toUpperCase() ?? '', where.slice(this.#base.length), args)
    }
  }

  #take(command: string, key: string, args: readonly Buffer[]): void {
    const texts = (): string[] => args.map(String)
    if (key === 'batch' && command === 'HSET') this.#grant(String(args[0]), args[1] as Buffer)
    else if (key === 'batch' && command === 'HDEL') for (const token of texts()) this.#end(token)
    else if (key === 'mask' && command === 'HSET') this.#close(String(args[0]), String(args[1]))
    else if (key === 'ends' && command === 'HSET') {
      for (let at = 0; at < args.length; at += 2) this.#finish(String(args[at]), String(args[at + 1]))
    } else if (key === 'ends' && command === 'HDEL') for (const id of texts()) this.#final.delete(id)
    else if (key === 'jobs' && command === 'HDEL') for (const id of texts()) this.#forget(id)
    else if (/^(ready|suspects|delay):/.test(key) && command === 'ZADD') {
      for (let at = 1; at < args.length; at += 2) this.#wait(String(args[at]))
    }
  }

  #grant(token: string, packed: Buffer): void {
    if (Number(token) <= this.#lastToken) this.#tell(`token ${token} was granted after ${this.#lastToken}`)
    this.#lastToken = Math.max(this.#lastToken, Number(token))
    const ids = idsIn(packed)
    for (const id of ids) {
      const holder = this.#holders.get(id)
      if (holder !== undefined) this.#tell(`${told(id)} was leased as ${token} while it was as ${holder}`)
      if (this.#final.has(id)) this.#tell(`${told(id)} was leased as ${token} although it was final`)
      this.#holders.set(id, token)
    }
    this.#leases.set(token, { ids, open: new Set(ids.keys()) })
    this.granted += ids.length
  }

  #end(token: string): void {
    const lease = this.#leases.get(token)
    if (lease === undefined) return this.#tell(`lease ${token} ended, and was never granted or is over`)
    for (const position of lease.open) this.#free(token, lease.ids[position] as string)
    this.#leases.delete(token)
  }

  #close(token: string, mask: string): void {
    const lease = this.#leases.get(token)
    if (lease === undefined) return this.#tell(`positions of ${token} were settled, which is no lease`)
    for (const position of lease.open) {
      if (mask[position] !== '1') continue
      lease.open.delete(position)
      this.#free(token, lease.ids[position] as string)
    }
  }

  #free(token: string, id: string): void {
    const holder = this.#holders.get(id)
    if (holder !== token) this.#tell(`${told(id)} was given up by ${token} while ${holder} held it`)
    this.#holders.delete(id)
    this.#freed.add(id)
  }

  #finish(id: string, end: string): void {
    const state = end.slice(2, 3)
    if (this.#holders.has(id)) this.#tell(`${told(id)} was finished under the lease of somebody else`)
    // Only a cancel finishes a job that waits.
    if (state !== 'x' && !this.#freed.has(id)) this.#tell(`${told(id)} was finished by nobody who held it`)
    if (this.#final.has(id)) this.#tell(`${told(id)} was finished twice`)
    this.#final.add(id)
    if (this.#freed.has(id)) this.settled++
  }

  #wait(id: string): void {
    if (this.#holders.has(id)) this.#tell(`${told(id)} was queued again under the lease of somebody else`)
    if (this.#final.has(id)) this.#tell(`${told(id)} was queued again although it was final`)
  }

  #forget(id: string): void {
    if (this.#holders.has(id)) this.#tell(`${told(id)} was forgotten while it was leased`)
    else if (!this.#final.has(id) && !this.#freed.has(id))
      this.#tell(`${told(id)} was forgotten before its end`)
    this.#holders.delete(id)
    this.#final.delete(id)
  }

  #tell(what: string): void {
    this.broken.push(what)
  }
}

function told(id: string): string {
  return `job ${unpackId(id)}`
}

/** The fourth of a batch's values: worker, queue, time, all ids in one text (MessagePack). */
function idsIn(packed: Buffer): string[] {
  let at = 0
  for (let skipped = 0; skipped < 3; skipped++) at = valueAt(packed, at).end
  const { start, end } = valueAt(packed, at)
  const text = packed.toString('latin1', start, end)
  return Array.from({ length: text.length / PACKED_CHARS }, (_, index) =>
    text.slice(index * PACKED_CHARS, (index + 1) * PACKED_CHARS),
  )
}

/** How many bytes numbers take, by their first one. */
const NUMBERS: Readonly<Record<number, number>> = {
  0xca: 4,
  0xcb: 8,
  0xcc: 1,
  0xcd: 2,
  0xce: 4,
  0xcf: 8,
  0xd0: 1,
  0xd1: 2,
  0xd2: 4,
  0xd3: 8,
}

/** Where a text or number lies. */
function valueAt(packed: Buffer, at: number): { readonly start: number; readonly end: number } {
  const kind = packed.readUInt8(at)
  const text = (lengthBytes: number): { start: number; end: number } => {
    const start = at + 1 + lengthBytes
    const length = lengthBytes === 0 ? kind & 0x1f : packed.readUIntBE(at + 1, lengthBytes)
    return { start, end: start + length }
  }
  if (kind >= 0xa0 && kind <= 0xbf) return text(0)
  if (kind === 0xd9) return text(1)
  if (kind === 0xda) return text(2)
  if (kind === 0xdb) return text(4)
  if (kind <= 0x7f || kind >= 0xe0) return { start: at, end: at + 1 }
  const bytes = NUMBERS[kind]
  if (bytes === undefined) throw new Error(`A lease holds a value of kind ${kind}, which it should not.`)
  return { start: at + 1, end: at + 1 + bytes }
}
