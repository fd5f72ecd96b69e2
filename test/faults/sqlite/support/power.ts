/**
 * Simulated power cuts: replays the system calls of a process that strace wrote down, onto a disk that keeps for certain
 * only what was synced. Of what was not, it keeps nothing, or a part of chance, as a real disk may.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Random } from '../../../../src/std/random.ts'

const CALLS = 'pwrite64,write,fsync,fdatasync,ftruncate,unlink'
/** What a disk writes in one piece. */
const SECTOR = 512

/** Why no process can be traced here; empty if one can. */
export function traceMissing(): string {
  const tried = spawnSync('strace', ['-o', '/dev/null', '-e', 'trace=fsync', 'true'])
  if (tried.error !== undefined) return 'strace is not installed'
  return tried.status === 0 ? '' : 'strace may not trace here'
}

/** The arguments of strace, before the command to trace. */
export function traceArgs(into: string): string[] {
  return ['-f', '-y', '-xx', '-s', '1000000', '-e', `trace=${CALLS}`, '-o', into]
}

export type Step =
  | { readonly type: 'write'; readonly path: string; readonly at: number; readonly data: Buffer }
  | { readonly type: 'truncate'; readonly path: string; readonly size: number }
  | { readonly type: 'sync' | 'unlink'; readonly path: string }
  | { readonly type: 'said'; readonly line: string }

const LINE = /^(\d+) +(\w+)\((.*)$/
const RESUMED = /^(\d+) +<\.\.\. (?:fsync|fdatasync) resumed>/
const FILE = /^\d+<([^>]*)>/
const TEXT = /"((?:\\x[0-9a-f]{2})*)"/
const ACKNOWLEDGED = /^(?:enqueued|completed) [\w-]+$/
const NUMBERS = /, (\d+)(?:, (\d+))?(?:\)| <unfinished)/

/** In the order in which they happened. */
export function readTrace(path: string): Step[] {
  const steps: Step[] = []
  /** Thread → the file that it is about to have synced. */
  const syncing = new Map<string, string>()
  for (const line of readFileSync(path, 'latin1').split('\n')) {
    const resumed = RESUMED.exec(line)?.[1]
    if (resumed !== undefined) steps.push({ type: 'sync', path: syncing.get(resumed) ?? '' })
    const [, thread = '', call = '', rest = ''] = LINE.exec(line) ?? []
    const file = unhex(FILE.exec(rest)?.[1] ?? '').toString()
    if (call === 'fsync' || call === 'fdatasync') {
      if (rest.includes('<unfinished')) syncing.set(thread, file)
      else steps.push({ type: 'sync', path: file })
    } else if (call !== '') steps.push(...stepsOf(call, file, rest))
  }
  return steps
}

function stepsOf(call: string, path: string, rest: string): Step[] {
  const text = TEXT.exec(rest)
  const data = unhex(text?.[1] ?? '')
  const behind = text === null ? rest : rest.slice(text.index + text[0].length)
  const [, first, second] = NUMBERS.exec(behind) ?? []
  switch (call) {
    case 'pwrite64':
      return [{ type: 'write', path, at: Number(second), data }]
    case 'ftruncate':
      return [{ type: 'truncate', path, size: Number(first) }]
    case 'unlink':
      return [{ type: 'unlink', path: data.toString() }]
    case 'write':
      if (!rest.startsWith('1<')) return []
      return (
        data
          .toString()
          .trimEnd()
          .split('\n')
          // Others of its process tree write as well.
          .filter((line) => ACKNOWLEDGED.test(line))
          .map((line) => ({ type: 'said', line }))
      )
    default:
      return []
  }
}

function unhex(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex')
}

type Change = Extract<Step, { type: 'write' | 'truncate' }>

/** A file's bytes, with room to grow. */
class Image {
  #room: Buffer = Buffer.alloc(0)
  #size = 0

  apply(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.type === 'truncate') this.#resize(change.size)
      else {
        this.#resize(Math.max(this.#size, change.at + change.data.length))
        change.data.copy(this.#room, change.at)
      }
    }
  }

  bytes(): Buffer {
    return Buffer.from(this.#room.subarray(0, this.#size))
  }

  copy(): Image {
    const image = new Image()
    image.#room = this.bytes()
    image.#size = this.#size
    return image
  }

  #resize(size: number): void {
    if (size > this.#room.length) {
      const room = Buffer.alloc(size * 2)
      this.#room.copy(room, 0, 0, this.#size)
      this.#room = room
    }
    if (size < this.#size) this.#room.fill(0, size, this.#size)
    this.#size = size
  }
}

export class Disk {
  readonly #synced = new Map<string, Image>()
  readonly #unsynced = new Map<string, Change[]>()
  readonly said: string[] = []

  /** Names come and go at once: SQLite syncs the directory itself where that matters. */
  take(step: Step): void {
    switch (step.type) {
      case 'said':
        this.said.push(step.line)
        return
      case 'unlink':
        this.#synced.delete(step.path)
        this.#unsynced.delete(step.path)
        return
      case 'sync': {
        const image = this.#synced.get(step.path) ?? new Image()
        image.apply(this.#unsynced.get(step.path) ?? [])
        this.#synced.set(step.path, image)
        this.#unsynced.delete(step.path)
        return
      }
      case 'write':
      case 'truncate': {
        const changes = this.#unsynced.get(step.path)
        if (changes === undefined) this.#unsynced.set(step.path, [step])
        else changes.push(step)
      }
    }
  }

  /** A file after a cut. `random`: keeps a part of what was not synced, some of it torn; null: nothing. */
  after(path: string, random: Random | null): Buffer {
    const image = this.#synced.get(path)?.copy() ?? new Image()
    if (random !== null)
      image.apply((this.#unsynced.get(path) ?? []).flatMap((change) => partOf(change, random)))
    return image.bytes()
  }
}

function partOf(change: Change, random: Random): Change[] {
  if (random.float() < 0.4) return []
  if (change.type === 'truncate' || random.float() < 0.5) return [change]
  const sectors = Math.floor((change.data.length * random.float()) / SECTOR)
  return [{ ...change, data: change.data.subarray(0, sectors * SECTOR) }]
}
