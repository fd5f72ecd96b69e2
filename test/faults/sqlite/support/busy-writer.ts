/**
 * What is traced for the simulated power cuts: enqueues and runs jobs on the store of the directory that it is given, and
 * says so on stdout as soon as each was acknowledged.
 */
import { writeSync } from 'node:fs'
import { holdfast } from 'holdfast'
import { sqliteStore } from '../../../../src/stores/sqlite/index.ts'
import { anything } from '../../support/behaviour.ts'

const [, , directory = '', rounds = '0'] = process.argv
const BURST = 5

const hf = holdfast({ store: sqliteStore({ directory }), logger: false })
let left = Number(rounds) * (BURST + 1)
const work = hf.job({ name: 'work', input: anything<string>(), run: () => undefined })
const allDone = new Promise<void>((resolve) => {
  hf.on('job.completed', ({ id }) => {
    writeSync(1, `completed ${id}\n`)
    if (--left === 0) resolve()
  })
})
await hf.work({ concurrency: 10 })

async function enqueue(text: string): Promise<void> {
  const { id } = await work.enqueue(text)
  writeSync(1, `enqueued ${id}\n`)
}

// Alone, and several at once that share a commit. The log of SQLite is written back every thousand pages.
for (let round = 0; round < Number(rounds); round++) {
  const text = `${round} `.repeat(400)
  await enqueue(text)
  await Promise.all(Array.from({ length: BURST }, () => enqueue(text)))
}
await allDone
// As it is: nothing is put in order by a close.
process.kill(process.pid, 'SIGKILL')
