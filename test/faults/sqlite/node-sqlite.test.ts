/** The embedded store on the SQLite that is in a current Node. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test } from 'vitest'
import { currentNode, currentNodeMissing } from '../../support/current-node.ts'
import { root } from '../../support/tree.ts'
import { until } from '../../support/until.ts'
import { Member } from './support/member.ts'
import { audited, folderForStores, rowsOf } from './support/place.ts'

const node = currentNode ?? ''
const folder = folderForStores()
const CONTRACT = new URL('support/node-sqlite-contract.ts', import.meta.url)
const PROGRAM = new URL('support/node-sqlite-program.ts', import.meta.url)
const CONTRACT_MS = 300_000
const JOBS = 500

function run(
  program: URL,
  { flags = [], args = [] }: { readonly flags?: readonly string[]; readonly args?: readonly string[] },
): Promise<{ stdout: string; stderr: string }> {
  const path = fileURLToPath(program)
  // Not what vitest sets for its own processes.
  const { PATH, HOME, TMPDIR } = process.env
  const env = { PATH, HOME, ...(TMPDIR === undefined ? {} : { TMPDIR }) }
  return promisify(execFile)(node, [...flags, path, ...args], { cwd: root, env, maxBuffer: 2 ** 26 })
}

afterEach(() => Member.endAll())

describe.skipIf(node === '')(`the embedded store on node:sqlite${currentNodeMissing}`, () => {
  test('passes the contract of the stores', { timeout: CONTRACT_MS }, async ({ annotate }) => {
    const { stdout } = await run(CONTRACT, { flags: ['--test-reporter=tap'] })
    const count = (what: string): number => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(stdout)?.[1])
    await annotate(`${count('pass')} tests`)
    expect(count('fail')).toBe(0)
    expect(count('pass')).toBeGreaterThan(500)
  })

  test('runs jobs of two processes and a commit, and prints nothing of its own', async () => {
    const { stdout, stderr } = await run(PROGRAM, { args: [folder] })
    expect(stdout.split('\n').sort().join('\n').trim()).toBe('ran 1\nran 1\n{"paid":1}')
    expect(stderr).toBe('')
  })

  test('shares a store with a process on another SQLite', async () => {
    const directory = join(folder, 'mixed')
    const [sender, worker] = await Promise.all([
      Member.withStore(directory),
      Member.withStore(directory, Member.start(node)),
    ])
    await worker.do('work', { concurrency: 100 })
    await sender.do('enqueue', JOBS, {})
    await until('the jobs to complete', async () => (await completed(directory)) === JOBS)
    await worker.kill()
    await sender.do('work', { concurrency: 100 })
    await sender.do('enqueue', JOBS, {})
    await until('the jobs to complete', async () => (await completed(directory)) === 2 * JOBS)
    expect(await audited(directory)).toEqual([])
  })
})

async function completed(directory: string): Promise<number | undefined> {
  const [row] = await rowsOf<{ n: number }>(directory, 'select count(*) as n from holdfast_ended')
  return row?.n
}
