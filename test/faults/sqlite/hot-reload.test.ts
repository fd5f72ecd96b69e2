/** Holdfast twice in one process: reloaded by a development server, or brought along by two packages. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test, vi } from 'vitest'
import { newFlushId, newJob } from '../../../src/stores/conformance/support.ts'
import { currentNode, currentNodeMissing } from '../../support/current-node.ts'
import { root } from '../../support/tree.ts'
import { audited, folderForStores } from './support/place.ts'

const folder = folderForStores()

test('a module that is loaded again opens the same directory', async () => {
  const directory = join(folder, 'reloaded')
  const load = () => import('../../../src/stores/sqlite/index.ts')
  const before = await load()
  vi.resetModules()
  const after = await load()
  expect(after.sqliteStore).not.toBe(before.sqliteStore)
  const stores = [before, after].map(({ sqliteStore }) => sqliteStore({ directory }))
  const jobs = stores.map(() => newJob())
  await Promise.all(stores.map((store, at) => store.enqueue({ id: newFlushId(), jobs: [jobs[at]!] })))
  for (const store of stores)
    for (const { id } of jobs) expect(await store.admin.get(id)).toMatchObject({ id })
  // The old one goes on until it is closed, and the new one after that.
  await stores[0]!.close()
  expect(await stores[1]!.admin.get(jobs[0]!.id)).toMatchObject({ id: jobs[0]!.id })
  await stores[1]!.close()
  expect(await audited(directory)).toEqual([])
})

/** Each copy enqueues for the other: a worker hears of a job that the other copy enqueues. */
const PROGRAM = `
const load = async (name) => (await import('./' + name + '/dist/index.js')).holdfast
const [one, two] = [await load('one'), await load('two')]
console.log(one === two)
const options = { store: 'file:jobs', logger: false, queues: { one: {}, two: {} } }
const [a, b] = [one(options), two(options)]
await Promise.all([[a, b, 'two'], [b, a, 'one']].map(async ([sender, worker, queue]) => {
  const run = ({ input }) => input + 1
  const [there, here] = [sender, worker].map((hf) => hf.job({ name: 'add-' + queue, queue, run }))
  await worker.work({ queues: [queue] })
  const handle = await there.enqueue(1)
  console.log(queue, await handle.result())
}))
await Promise.all([a.close(), b.close()])
`

test.for([
  ['the Node of the tests', process.execPath],
  [`a Node with node:sqlite${currentNodeMissing}`, currentNode],
] as const)(
  'two copies of the package in one process share a directory, on %s',
  async ([, node], context) => {
    if (node === undefined) return context.skip()
    const place = join(folder, `copies-${node === process.execPath}`)
    for (const name of ['one', 'two']) {
      mkdirSync(join(place, name), { recursive: true })
      cpSync(join(root, 'dist'), join(place, name, 'dist'), { recursive: true })
      cpSync(join(root, 'package.json'), join(place, name, 'package.json'))
    }
    symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
    const args = ['--input-type=module', '--eval', PROGRAM]
    const { stdout, stderr } = await promisify(execFile)(node, args, { cwd: place })
    expect(stdout.trim().split('\n').sort()).toEqual(['false', 'one 2', 'two 2'])
    expect(stderr).toBe('')
    expect(await audited(join(place, 'jobs'))).toEqual([])
  },
)
