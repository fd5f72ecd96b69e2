/**
 * Simulated power cuts while jobs are enqueued and run, with `durability: 'full'`.
 *
 * What this shows: SQLite, as this store sets it up, has everything synced that was acknowledged before, through
 * checkpoints as well, and the store opens again with whatever part of the rest is there, torn sectors included.
 * What it does not: that the disk does as fsync promises, that the file system brings the files' names back, and anything
 * of macOS, where other calls sync. A part of a write that was not synced is modelled as whole sectors.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { seededRandom } from '../../../src/std/random.ts'
import { root } from '../../support/tree.ts'
import { audited, folderForStores } from './support/place.ts'
import { Disk, readTrace, traceArgs, traceMissing, type Step } from './support/power.ts'
import { readJobs, writeStore } from './support/reader.ts'

const WRITER = fileURLToPath(new URL('support/busy-writer.ts', import.meta.url))
const CUTS = Number(process.env['HOLDFAST_POWER_CUTS'] ?? 50)
const WRITER_ROUNDS = 100
const SEED = 20

const missing = traceMissing()
const folder = folderForStores()
const directory = join(folder, 'store')
let steps: Step[] = []

describe.skipIf(missing !== '')(`a power cut${missing && ` (${missing})`}`, () => {
  beforeAll(async () => {
    const trace = join(folder, 'trace')
    const command = [process.execPath, '--import', 'tsx', WRITER, directory, String(WRITER_ROUNDS)]
    const child = spawn('strace', [...traceArgs(trace), ...command], { cwd: root, stdio: 'ignore' })
    await once(child, 'exit')
    steps = readTrace(trace)
    rmSync(trace)
  })

  test('loses nothing that was acknowledged', async ({ annotate }) => {
    const random = seededRandom(SEED)
    const first = steps.findIndex((step) => step.type === 'said')
    const cuts = Array.from(
      { length: CUTS },
      () => first + Math.floor(random.float() * (steps.length - first)),
    )
    const disk = new Disk()
    let at = 0
    let acked = 0
    for (const [nth, cut] of cuts.toSorted((a, b) => a - b).entries()) {
      for (; at <= cut; at++) disk.take(steps[at] as Step)
      const copy = join(folder, `cut-${nth}`)
      const kept = nth % 2 === 0 ? null : random
      const file = join(directory, 'holdfast.db')
      writeStore(copy, { database: disk.after(file, kept), wal: disk.after(`${file}-wal`, kept) })
      const jobs = readJobs(copy)
      const states = new Map<string, string>(jobs.map(({ id, state }) => [id, state]))
      const lost = disk.said.filter((line) => {
        const [what, id = ''] = line.split(' ')
        return what === 'completed' ? states.get(id) !== 'completed' : !states.has(id)
      })
      expect(lost, `cut at step ${cut}`).toEqual([])
      expect(await audited(copy)).toEqual([])
      acked += disk.said.length
      rmSync(copy, { recursive: true })
    }
    const checkpoints = steps.filter((step) => step.type === 'sync' && step.path.endsWith('.db')).length
    await annotate(
      `${CUTS} cuts of ${steps.length} calls, ${checkpoints} checkpoints, ${acked} acknowledgements checked`,
    )
    expect(acked).toBeGreaterThan(CUTS)
    expect(checkpoints).toBeGreaterThan(0)
  })
})
