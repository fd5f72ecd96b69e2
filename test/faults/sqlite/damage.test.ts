/**
 * A closed store whose database file was damaged, or the log of a killed one: cut off somewhere, or with flipped bits.
 * Whoever opens it and reads all jobs gets each as it was, or an error that says so. A log that ends too soon is believed.
 */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { HoldfastError } from '../../../src/errors.ts'
import { attemptError } from '../../../src/job/failure.ts'
import type { JobRecord, NewJob } from '../../../src/job/record.ts'
import type { Settlement } from '../../../src/job/settlement.ts'
import { seededRandom, type Random } from '../../../src/std/random.ts'
import { newFlushId, newJob, newWorkerId, uniqueWhile } from '../../../src/stores/conformance/support.ts'
import { folderForStores } from './support/place.ts'
import { readJobs, withCalls, writeStore } from './support/reader.ts'

const DAMAGES = Number(process.env['HOLDFAST_DAMAGES'] ?? 200)
const JOBS = 160
const SEED = Number(process.env['HOLDFAST_DAMAGE_SEED'] ?? 7)
const PAGE_BYTES = 4_096

const folder = folderForStores()
let whole: Buffer
/** Of a process that was killed before a checkpoint: all is in the log. */
let killed: { readonly database: Buffer; readonly wal: Buffer }
let jobs: readonly JobRecord[]

/** Small ones, and some that fill pages of their own. */
function makeJob(nth: number): NewJob {
  const text = `job ${nth} `.repeat(nth % 20 === 0 ? 900 : 10 + (nth % 60))
  return newJob({
    payload: JSON.stringify({ nth, text }),
    ...(nth % 7 === 0 ? { due: { inMs: 3_600_000 } } : {}),
    ...(nth % 11 === 0 ? { unique: uniqueWhile('unfinished', `key ${nth}`) } : {}),
    ...(nth % 5 === 0 ? { priority: 1 } : {}),
  })
}

function settlementOf(nth: number): Settlement {
  const error = attemptError(new Error(`went wrong ${nth}`), 1, 'permanent')
  if (nth % 4 === 0) return { type: 'dead', error }
  if (nth % 4 === 1) return { type: 'retry', delayMs: 3_600_000, error }
  return { type: 'completed', result: JSON.stringify({ nth }), resultDropped: false }
}

/** Jobs in every state. */
function fillStore(directory: string): void {
  const worker = newWorkerId()
  withCalls(directory, (ask) => {
    const made = Array.from({ length: JOBS }, (_, nth) => makeJob(nth))
    // Many transactions, and yet no checkpoint.
    for (let at = 0; at < JOBS; at += 5) ask('enqueue', { id: newFlushId(), jobs: made.slice(at, at + 5) })
    ask('register', worker, 3_600_000, null)
    const claim = { queue: made[0]?.queue ?? '', limit: 100, suspects: true }
    const { leases } = ask('cycle', { worker, settle: [], claim })
    const { token = 0 as never, jobs: claimed = [] } = leases[0] ?? {}
    const settle = claimed.slice(10).map((_, index) => ({
      token,
      position: index + 10,
      settlement: settlementOf(index),
      runMs: 5.5,
    }))
    const report = {
      token,
      position: 0,
      progress: { done: 1, total: 2, note: 'half' },
      log: [{ at: 1, level: 'info' as const, message: 'm', fields: null }],
    }
    ask('cycle', { worker, settle, claim: null, reports: [report] })
    for (const { id } of made.slice(-10))
      ask('change', { ids: [id] }, { type: 'cancel', reason: 'not needed' }, 1, null)
    const read = (name: string): Buffer => readFileSync(join(directory, name))
    killed = { database: read('holdfast.db'), wal: read('holdfast.db-wal') }
  })
}

interface Damage {
  readonly what: string
  readonly bytes: Buffer
  /** The first flipped bit; null if it was cut off. */
  readonly first: number | null
}

function damage(random: Random, whole: Buffer): Damage {
  const below = (limit: number): number => Math.floor(random.float() * limit)
  if (random.float() < 0.25) {
    const anywhere = below(whole.length)
    const size = random.float() < 0.5 ? anywhere : anywhere - (anywhere % PAGE_BYTES)
    return { what: `cut off at ${size}`, bytes: whole.subarray(0, size), first: null }
  }
  const bytes = Buffer.from(whole)
  const places = Array.from({ length: 1 + below(3) }, () => [below(whole.length), below(8)] as const)
  for (const [at, bit] of places) bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
  const told = places.map(([at, bit]) => `${at}.${bit} on page ${Math.floor(at / PAGE_BYTES) + 1}`)
  const first = Math.min(...places.map(([at]) => at))
  return { what: `bits flipped at ${told.join(', ')}`, bytes, first }
}

/** What the reader was told; null if all is there and as it was. */
function errorOf(directory: string, what: string): HoldfastError | null {
  try {
    const found = readJobs(directory)
    // To find out what differs takes longer than everything else together.
    if (JSON.stringify(found) !== JSON.stringify(jobs)) expect(found, what).toEqual(jobs)
    return null
  } catch (error) {
    if (error instanceof HoldfastError) return error
    throw error
  }
}

beforeAll(() => {
  const directory = join(folder, 'whole')
  fillStore(directory)
  whole = readFileSync(join(directory, 'holdfast.db'))
  const copy = join(folder, 'copy')
  writeStore(copy, { database: whole })
  jobs = readJobs(copy)
})

describe('a damaged database file', () => {
  test('is as it was without damage', () => {
    expect(jobs).toHaveLength(JOBS)
    const states = new Set(jobs.map(({ state }) => state))
    expect(states).toEqual(new Set(['ready', 'scheduled', 'running', 'completed', 'dead', 'cancelled']))
  })

  test('loses nothing without an error that says so', async ({ annotate }) => {
    const random = seededRandom(SEED)
    const codes = new Map<string, number>()
    for (let nth = 0; nth < DAMAGES; nth++) {
      const directory = join(folder, `damaged-${nth}`)
      const { what, bytes } = damage(random, whole)
      writeStore(directory, { database: bytes })
      const code = errorOf(directory, what)?.code ?? 'nothing lost'
      codes.set(code, (codes.get(code) ?? 0) + 1)
      rmSync(directory, { recursive: true })
    }
    await annotate([...codes].map(([code, times]) => `${code}: ${times}`).join(', '))
    expect(codes.get('HF_STORE_DAMAGED')).toBeGreaterThan(DAMAGES / 4)
  })

  test.each(['emptied', 'removed'])('is not taken for a new store if it was %s', (how) => {
    const directory = join(folder, how)
    writeStore(directory, { database: Buffer.alloc(0) })
    if (how === 'removed') rmSync(join(directory, 'holdfast.db'))
    expect(errorOf(directory, how)).toMatchObject({ code: 'HF_STORE_DAMAGED' })
  })
})

describe('a damaged log of a killed process', () => {
  const HEADER = 32
  const FRAME = 24 + PAGE_BYTES

  /** Where the last `count` transactions begin: there, damage can look like a write that was torn. */
  function startOfLast(count: number): number {
    const { wal } = killed
    const starts = Array.from({ length: (wal.length - HEADER) / FRAME }, (_, nth) => HEADER + nth * FRAME)
    const ends = starts.filter((at) => wal.readUInt32BE(at + 4) > 0).map((at) => at + FRAME)
    return ends.at(-1 - count) ?? 0
  }

  test('is as it was without damage', () => {
    const directory = join(folder, 'killed')
    writeStore(directory, killed)
    expect(readJobs(directory)).toEqual(jobs)
  })

  test('is noticed, unless the log merely ends too soon', async ({ annotate }) => {
    const random = seededRandom(SEED)
    const doubtful = startOfLast(4)
    const codes = new Map<string, number>()
    const ids = new Set(jobs.map(({ id }) => id))
    for (let nth = 0; nth < DAMAGES; nth++) {
      const directory = join(folder, `log-${nth}`)
      const { what, bytes, first } = damage(random, killed.wal)
      writeStore(directory, { database: killed.database, wal: bytes })
      if (first !== null && first < doubtful)
        expect(errorOf(directory, what)?.code, what).toBe('HF_STORE_DAMAGED')
      else {
        const found = readJobs(directory)
        expect(
          found.every(({ id }) => ids.has(id)),
          what,
        ).toBe(true)
      }
      const kind = first === null ? 'cut off' : first < doubtful ? 'noticed' : 'in the last transactions'
      codes.set(kind, (codes.get(kind) ?? 0) + 1)
      rmSync(directory, { recursive: true })
    }
    await annotate([...codes].map(([code, times]) => `${code}: ${times}`).join(', '))
    expect(codes.get('noticed')).toBeGreaterThan(DAMAGES / 2)
  })
})
