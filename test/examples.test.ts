import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { describe, expect, test, vi } from 'vitest'
import { root } from './support/tree.ts'

/** An example takes a second. If it does not exit, it is killed after this long. */
const DEADLINE_MS = 20_000
// Each is a process that compiles its imports: more at a time would only compete for the cores.
vi.setConfig({ maxConcurrency: 2, testTimeout: DEADLINE_MS + 5_000 })

const examples = namesIn('examples', '.ts')

describe('the examples', () => {
  test('have an expected output each, and no output is left without its example', () => {
    expect(namesIn('examples/expected', '.txt')).toEqual(examples)
  })

  test('are listed in their README, each with a line on what it shows', () => {
    const readme = readFileSync(`${root}examples/README.md`, 'utf8')
    const rows = readme.matchAll(/^\| \[(.+)\.ts\]\(\1\.ts\) \| \w/gm)
    expect([...rows].map(([, name]) => name)).toEqual(examples)
  })
})

describe.concurrent('the example', () => {
  test.for(examples)('%s prints what is expected, and ends', async (name) => {
    const ran = await run(`examples/${name}.ts`)
    const stdout = readFileSync(`${root}examples/expected/${name}.txt`, 'utf8')
    expect(ran).toEqual({ stdout, stderr: '', exit: 0 })
  })
})

function namesIn(folder: string, ending: string): string[] {
  return readdirSync(root + folder)
    .filter((name) => name.endsWith(ending))
    .map((name) => name.slice(0, -ending.length))
    .toSorted()
}

async function run(path: string): Promise<{ stdout: string; stderr: string; exit: number | string }> {
  const { PATH, HOME, TMPDIR } = process.env
  const child = spawn(process.execPath, ['--import', 'tsx', path], {
    cwd: root,
    // Nothing else: variables such as JOB_MAX_RETRIES, and colours, would change the output.
    env: { PATH, HOME, TMPDIR, HOLDFAST_STORE: 'memory:' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: DEADLINE_MS,
    killSignal: 'SIGKILL',
  })
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null, string | null]>,
  ])
  return { stdout, stderr, exit: code ?? signal ?? 'unknown' }
}
