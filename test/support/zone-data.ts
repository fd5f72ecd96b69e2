/** The zone data of this machine (TZif files), read without a library: the oracle for local times. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

export interface Transition {
  readonly atMs: number
  readonly beforeMs: number
  readonly afterMs: number
}

const FOLDER = '/usr/share/zoneinfo'
/** Copies of the same zones, and files that are not zones. */
const OTHERS =
  /^(posix|right|Etc\/Unknown|.*\.(tab|zi|list|leapseconds)|leap.*|posixrules|localtime|Factory|\+VERSION|SECURITY)/

/** Empty if this machine has no zone data, or only data without future transitions. */
export function zoneNames(): readonly string[] {
  if (!existsSync(FOLDER)) return []
  const names = filesIn('').filter((name) => !OTHERS.test(name))
  const last = transitionsOf('Europe/Berlin').at(-1)
  return last !== undefined && last.atMs > Date.UTC(2037, 0, 1) ? names : []
}

function filesIn(folder: string): string[] {
  return readdirSync(join(FOLDER, folder)).flatMap((entry) => {
    const name = folder === '' ? entry : `${folder}/${entry}`
    return statSync(join(FOLDER, name)).isDirectory() ? filesIn(name) : [name]
  })
}

/** All changes of the offset, in order (RFC 8536). */
export function transitionsOf(zone: string): readonly Transition[] {
  const data = readFileSync(join(FOLDER, zone))
  if (data.toString('latin1', 0, 4) !== 'TZif') return []
  // The second block has 64-bit times. The header of the first block gives its length.
  const first = header(data, 0)
  const start = 44 + first.times * 5 + first.types * 6 + first.chars + first.leaps * 8 + first.std + first.ut
  const { times, types } = header(data, start)
  const timesAt = start + 44
  const indexesAt = timesAt + times * 8
  const typesAt = indexesAt + times
  const offsets = Array.from({ length: types }, (_, type) => data.readInt32BE(typesAt + type * 6) * 1000)
  const changes: Transition[] = []
  let beforeMs = offsets[0] ?? 0
  for (let index = 0; index < times; index++) {
    const afterMs = offsets[data.readUInt8(indexesAt + index)] ?? 0
    const atMs = Number(data.readBigInt64BE(timesAt + index * 8)) * 1000
    if (afterMs !== beforeMs) changes.push({ atMs, beforeMs, afterMs })
    beforeMs = afterMs
  }
  return changes
}

function header(data: Buffer, at: number) {
  const count = (index: number): number => data.readUInt32BE(at + 20 + index * 4)
  return { ut: count(0), std: count(1), leaps: count(2), times: count(3), types: count(4), chars: count(5) }
}
