/**
 * Notices damage in the log (`-wal`) before SQLite reads it. SQLite takes the log up to the first frame whose checksum is
 * wrong, and forgets the rest without an error: after a power cut that is right, because a torn write was never
 * acknowledged. But with `durability: 'full'` a transaction begins only when the one before it is on the disk. So a frame
 * that follows a commit frame proves that everything before it was whole once.
 *
 * Reading this file with `fs` is safe: SQLite's locks are on the database and on `-shm`.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { endianness } from 'node:os'
import { HoldfastError } from '../../../errors.ts'

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
/** Of both parts of a frame, the checksum covers this much of the first. */
const SUMMED_BYTES = 8
const MAGIC = 0x377f0682
const PAGE_BYTES = 4_096
/** A process that writes meanwhile can make one look see half of a frame, but not three in a row. */
const LOOKS = 3

export function refuseDamagedLog(database: string): void {
  const path = `${database}-wal`
  let frame: number | null = null
  for (let look = 0; look < LOOKS; look++) {
    const found = findDamage(path)
    if (found === null || (frame !== null && found !== frame)) return
    frame = found
  }
  throw new HoldfastError(
    'HF_STORE_DAMAGED',
    `${path} is damaged at frame ${frame}, and transactions that were committed stand behind it.`,
    {
      hint: "Stop every process that uses the store and copy its directory; then restore a backup. To go on with what was committed before the damage, open the store once with durability 'normal'.",
    },
  )
}

/** Number of the frame that is damaged, 0 for the header; null if the log is whole, or torn at its end. */
export function findDamage(path: string): number | null {
  let file
  try {
    file = openSync(path, 'r')
  } catch {
    // There is none, or SQLite will say why it cannot be read.
    return null
  }
  try {
    return damageIn(file)
  } finally {
    closeSync(file)
  }
}

/** Both halves of SQLite's checksum. */
type Sum = readonly [number, number]

interface Frame {
  readonly isCommit: boolean
  readonly salts: string
  /** As it is stored in the frame. */
  readonly stored: Sum
  /** Whether its checksum follows from that of the frame before it. */
  isBehind(before: Sum): boolean
}

function damageIn(file: number): number | null {
  const header = Buffer.alloc(HEADER_BYTES)
  if (readSync(file, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return null
  const isBig = header.readUInt32BE(0) === MAGIC + 1
  const isWhole = isSame(sumOf(header.subarray(0, 24), [0, 0], isBig), sumAt(header, 24))
  const salts = isWhole ? header.toString('hex', 16, 24) : null
  let bad: number | null = isWhole ? null : 0
  let before: Pick<Frame, 'stored' | 'salts' | 'isCommit'> | null = isWhole
    ? { stored: sumAt(header, 24), salts: salts ?? '', isCommit: false }
    : null
  let number = 0
  for (const frame of framesOf(file, isWhole ? header.readUInt32BE(8) : PAGE_BYTES, isWhole && isBig)) {
    number++
    // What a log has left behind that began anew.
    const isStale = salts !== null && frame.salts !== salts
    const isNext = !isStale && before?.salts === frame.salts && frame.isBehind(before.stored)
    if (bad !== null && isNext && before?.isCommit === true) return bad
    if (!isNext) bad ??= number
    before = isStale ? null : frame
  }
  return null
}

function* framesOf(file: number, pageBytes: number, isBig: boolean): Iterable<Frame> {
  const size = FRAME_HEADER_BYTES + pageBytes
  const most = Math.max(1, Math.floor(2 ** 20 / size))
  const chunk = Buffer.alloc(most * size)
  for (let at = HEADER_BYTES; ; at += chunk.length) {
    const read = readSync(file, chunk, 0, chunk.length, at)
    for (let start = 0; start + size <= read; start += size)
      yield frameOf(chunk.subarray(start, start + size), isBig)
    if (read < chunk.length) return
  }
}

function frameOf(bytes: Buffer, isBig: boolean): Frame {
  const stored = sumAt(bytes, 16)
  return {
    isCommit: bytes.readUInt32BE(4) > 0,
    salts: bytes.toString('hex', 8, 16),
    stored,
    isBehind(before) {
      const first = sumOf(bytes.subarray(0, SUMMED_BYTES), before, isBig)
      return isSame(sumOf(bytes.subarray(FRAME_HEADER_BYTES), first, isBig), stored)
    },
  }
}

const IS_BIG_MACHINE = endianness() === 'BE'

/** https://sqlite.org/fileformat2.html#checksum_algorithm */
function sumOf(bytes: Buffer, [first, second]: Sum, isBig: boolean): Sum {
  const words = new Int32Array(bytes.length / 4)
  const copy = Buffer.from(words.buffer)
  bytes.copy(copy)
  if (isBig !== IS_BIG_MACHINE) copy.swap32()
  for (let at = 0; at < words.length; at += 2) {
    first = (first + (words[at] as number) + second) | 0
    second = (second + (words[at + 1] as number) + first) | 0
  }
  return [first, second]
}

function sumAt(bytes: Buffer, at: number): Sum {
  return [bytes.readInt32BE(at), bytes.readInt32BE(at + 4)]
}

function isSame([a, b]: Sum, [c, d]: Sum): boolean {
  return a === c && b === d
}
