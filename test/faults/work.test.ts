import { describe, expect, test } from 'vitest'
import type { Child } from './support/child.ts'
import { project } from './support/project.ts'

const { write, work, run } = project()

const HEAD = `import { holdfast } from 'holdfast'\nconst hf = holdfast()\n`

async function stopped(child: Child): Promise<void> {
  child.kill('SIGTERM')
  expect(await child.ended()).toEqual({ code: 0, signal: null })
}

describe('a worker', () => {
  test.for([
    [
      'jobs.mjs',
      `${HEAD} export const hello = hf.job({ name: 'hello', run: () => console.log('hello') })\nawait hello.enqueue()`,
    ],
    [
      'jobs.cjs',
      `const hf = require('holdfast').holdfast()
       const hello = hf.job({ name: 'hello', run: () => console.log('hello') })
       module.exports = { jobs: [hello] }
       void hello.enqueue()`,
    ],
    [
      'jobs.ts',
      `import { hf, type Words } from './shared.ts'
       const say = (words: Words): void => console.log(words.first)
       export default { hello: hf.job({ name: 'hello', run: (): void => say({ first: 'hello' }) }) }
       await (hf.enqueueMany([{ kind: 'item', job: 'hello', input: undefined, options: {} }]) satisfies Promise<unknown>)`,
    ],
  ] as const)('runs the jobs of %s', async ([file, text]) => {
    write('shared.ts', `${HEAD} export { hf }\nexport interface Words { readonly first: string }`)
    const child = work(write(file, text))
    await child.line(/^hello$/)
    await child.logged({ event: 'job.completed', job: 'hello' })
    await stopped(child)
  })

  test('serves a TypeScript module with the very copy of the library that it imports', async () => {
    const text = `import { Hub } from '${new URL('../../dist/core.js', import.meta.url).href}'
      import { holdfast } from 'holdfast'
      const hf = holdfast()
      console.log('same copy', Hub.of(hf) instanceof Hub)
      export const a = hf.job({ name: 'a', run() {} })`
    const child = work(write('copy.ts', text))
    await child.line('same copy true')
    await child.logged({ event: 'worker.started' })
    await stopped(child)
  })

  test('reads the given queues with the given number of slots', async () => {
    const text = `import { holdfast } from 'holdfast'
      const hf = holdfast({ queues: { mail: {}, media: {}, other: {} } })
      export const a = hf.job({ name: 'a', queue: 'mail', run() {} })`
    const child = work(write('queues.mjs', text), '--queues', 'mail=5,media=20', '--concurrency', '7')
    expect(await child.logged({ event: 'worker.started' })).toMatchObject({
      queues: ['mail', 'media'],
      concurrency: 7,
    })
    await stopped(child)
  })

  test('writes JSON lines with the facts of each attempt to stderr, and nothing to stdout', async () => {
    const text = `${HEAD}
      export const good = hf.job({ name: 'good', run() {} })
      export const bad = hf.job({ name: 'bad', retry: { attempts: 2, delay: '1ms' }, run() { throw new Error('boom') } })
      const { id } = await good.enqueue()
      await bad.enqueue()`
    const child = work(write('facts.mjs', text), '--log-level', 'debug')
    const facts = { id: expect.any(String), worker: expect.any(String), waitMs: expect.any(Number) }
    const ended = {
      ...facts,
      durationMs: expect.any(Number),
      time: expect.any(Number),
      msg: expect.any(String),
    }
    expect(await child.logged({ event: 'job.started', job: 'good' })).toMatchObject({
      ...facts,
      attempt: 1,
      level: 20,
    })
    expect(await child.logged({ event: 'job.completed', job: 'good' })).toMatchObject({
      ...ended,
      attempt: 1,
      outcome: 'completed',
      level: 30,
    })
    expect(await child.logged({ event: 'job.failed', attempt: 1 })).toMatchObject({
      ...ended,
      outcome: 'retried',
      level: 40,
    })
    const dead = await child.logged({ event: 'job.failed', attempt: 2 })
    expect(dead).toMatchObject({ ...ended, outcome: 'dead', level: 50, err: { message: 'boom' } })
    await stopped(child)
    expect(child.logs()).toHaveLength(child.err.length)
    expect(child.out).toEqual([])
  })

  test('writes readable lines if told to, without colours into a pipe', async () => {
    const child = work(
      write('tidy.mjs', `${HEAD} export const a = hf.job({ name: 'a', run() {} })\nawait a.enqueue()`),
      '--log',
      'tidy',
    )
    expect(await child.line('a completed in')).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} ● a completed in \d+ms {2}job …/,
    )
    await stopped(child)
    expect(child.err.join('')).not.toContain('\u001b')
  })

  test('leaves a logger that the module chose alone', async () => {
    const text = `import { holdfast } from 'holdfast'
      const say = (fields, message) => console.log('own:', message)
      const hf = holdfast({ logger: { debug() {}, info: say, warn: say, error: say } })
      export const a = hf.job({ name: 'a', run() {} })`
    const child = work(write('logger.mjs', text), '--log-level', 'debug')
    await child.line('own: worker started')
    await child.logged({ event: 'cli.own_logger' })
    await stopped(child)
    expect(child.logs().filter((log) => String(log['event']).startsWith('worker.'))).toEqual([])
  })
})

describe('a handler that misbehaves', () => {
  const text = `${HEAD}
    const once = { retry: { attempts: 1 } }
    const turn = () => new Promise((resolve) => setTimeout(resolve, 5))
    export const rejects = hf.job({ name: 'rejects', ...once, async run() { void Promise.reject(new Error('left behind')); await turn() } })
    export const late = hf.job({ name: 'late', ...once, run() { void turn().then(() => { throw new Error('too late') }) } })
    export const text = hf.job({ name: 'text', ...once, run() { throw 'a text' } })
    export const nothing = hf.job({ name: 'nothing', ...once, run() { throw undefined } })
    export const good = hf.job({ name: 'good', run() {} })
    for (const job of [rejects, late, text, nothing]) await job.enqueue()
    hf.on('job.unhandled', () => good.enqueue())`

  test('fails alone, whatever it throws or leaves rejected; the process lives on', async () => {
    const child = work(write('misbehaves.mjs', text))
    expect(await child.logged({ event: 'job.failed', job: 'rejects' })).toMatchObject({
      err: { message: 'left behind' },
    })
    expect(await child.logged({ event: 'job.failed', job: 'text' })).toMatchObject({
      err: { message: 'a text' },
    })
    await child.logged({ event: 'job.failed', job: 'nothing' })
    expect(await child.logged({ event: 'job.unhandled', job: 'late' })).toMatchObject({
      err: { message: 'too late' },
    })
    await child.logged({ event: 'job.completed', job: 'good' })
    await stopped(child)
  })

  test.for([
    ['exits', 'process.exit(7)', 7],
    ['crashes', "setTimeout(() => { throw new Error('crash') })", 1],
  ] as const)('and ends the process is not hidden: it %s', async ([name, statement, code]) => {
    const child = work(
      write(
        `${name}.mjs`,
        `${HEAD} export const a = hf.job({ name: 'a', run() { ${statement} } })\nawait a.enqueue()`,
      ),
    )
    expect(await child.ended()).toEqual({ code, signal: null })
  })
})

describe('what cannot work', () => {
  const failing = (child: Child): Promise<{ code: number | null; text: string }> =>
    child.ended().then(({ code }) => ({ code, text: child.err.join('\n') }))

  test.for([
    ['empty.mjs', 'export const port = 80', 1, 'empty.mjs exports no job (it exports port). [HF_NO_JOBS]'],
    ['throws.mjs', 'throw new TypeError("boom")', 1, 'caused by TypeError: boom'],
    ['broken.ts', 'export const a: = 1', 1, 'broken.ts:1:'],
    ['import.mjs', 'import "no-such-package"', 1, 'no-such-package'],
    [
      'twice.mjs',
      `${HEAD} hf.job({ name: 'a', run() {} }); hf.job({ name: 'a', run() {} })`,
      1,
      'caused by There is already a job named "a". [HF_DUPLICATE_JOB]',
    ],
    [
      'two.mjs',
      `${HEAD} export const a = hf.job({ name: 'a', run() {} })\nexport const b = holdfast().job({ name: 'b', run() {} })`,
      1,
      'jobs of 2 holdfast() objects: a and b.',
    ],
  ] as const)('is explained: %s', async ([file, text, code, message]) => {
    const answer = await failing(work(write(file, text)))
    expect(answer.text).toContain(message)
    expect(answer.text).toContain('  hint: ')
    expect(answer.text).not.toContain('    at node:')
    expect(answer.code).toBe(code)
  })

  test('a missing file has an exit code of its own', async () => {
    expect(await failing(work('nowhere.ts'))).toMatchObject({
      code: 3,
      text: expect.stringContaining('There is no file'),
    })
  })

  test('wrong usage has an exit code of its own', async () => {
    const file = write('fine.mjs', `${HEAD} export const a = hf.job({ name: 'a', run() {} })`)
    expect(await failing(run('wrok'))).toMatchObject({
      code: 2,
      text: expect.stringContaining('Did you mean work?'),
    })
    expect(await failing(work(file, '--drain', 'soon'))).toMatchObject({ code: 2 })
    expect(await failing(work(file, '--queues', 'nope'))).toMatchObject({
      code: 2,
      text: expect.stringContaining('HF_UNKNOWN_QUEUE'),
    })
  })

  test('a store that cannot be reached has an exit code of its own', async () => {
    const text = `import { holdfast } from 'holdfast'
      import { memoryStore } from 'holdfast/memory'
      const store = { ...memoryStore(), open: async () => { throw new Error('connect ECONNREFUSED') } }
      const hf = holdfast({ store, timeout: '200ms' })
      export const a = hf.job({ name: 'a', run() {} })`
    const answer = await failing(work(write('unreachable.mjs', text)))
    expect(answer).toMatchObject({
      code: 5,
      text: expect.stringContaining('connect ECONNREFUSED [HF_STORE_UNREACHABLE]'),
    })
  })

  test('a signal while the store does not answer ends the wait', async () => {
    const text = `import { holdfast } from 'holdfast'
      import { memoryStore } from 'holdfast/memory'
      const store = { ...memoryStore(), open: () => new Promise(() => {}) }
      const hf = holdfast({ store, timeout: '1m' })
      export const a = hf.job({ name: 'a', run() {} })`
    const child = work(write('waits.mjs', text))
    await child.logged({ event: 'cli.loaded' })
    child.kill('SIGINT')
    expect(await child.ended()).toEqual({ code: 130, signal: null })
  })
})
