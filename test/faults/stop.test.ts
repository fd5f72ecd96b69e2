import { describe, expect, test } from 'vitest'
import { project } from './support/project.ts'

const { write, work, files } = project()

/** A job whose handler prints that it began and waits as told. The final state is printed at the end. */
function oneJob(run: string): string {
  return `
    import { holdfast } from 'holdfast'
    const hf = holdfast()
    export const job = hf.job({ name: 'job', async run({ signal, job }) {
      console.log('began', job.attempt)
      ${run}
      console.log('finished')
    } })
    const handle = await job.enqueue()
    hf.on('worker.stopped', async () => console.log('state', await handle.state()))
  `
}

const UNTIL_ABORTED = `await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))`
// Ignores its abort signal, and its timer keeps the process open.
const FOR_EVER = `await new Promise(() => setInterval(() => {}, 1_000))`

describe('the first signal', () => {
  test.for(['SIGTERM', 'SIGINT'] as const)('lets a running job finish: %s', async (signal) => {
    const file = write(
      'drain.mjs',
      oneJob(`await new Promise((resolve) => hf.on('worker.stopping', () => setImmediate(resolve)))`),
    )
    const child = work(file)
    await child.line('began 1')
    child.kill(signal)
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.out).toEqual(['began 1', 'finished', 'state completed'])
    await child.logged({ event: 'worker.stopped', released: 0 })
  })

  test('takes no new job', async () => {
    const file = write(
      'no-more.mjs',
      oneJob(`hf.on('worker.stopping', () => {}); if (job.attempt === 1) {
        await new Promise((resolve) => hf.on('worker.stopping', resolve))
        await more.enqueue()
      }`) + `export const more = hf.job({ name: 'more', run: () => console.log('more') })`,
    )
    const child = work(file, '--concurrency', '5')
    await child.line('began 1')
    child.kill('SIGTERM')
    expect(await child.ended()).toMatchObject({ code: 0 })
    expect(child.out).toEqual(['began 1', 'finished', 'state completed'])
  })

  test('aborts jobs that outlast the drain, gives them back, and exits with 0', async () => {
    const child = work(write('abort.mjs', oneJob(UNTIL_ABORTED)), '--drain', '300ms', '--log-level', 'debug')
    await child.line('began 1')
    child.kill('SIGTERM')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.out).toEqual(['began 1', 'state ready'])
    const [stopping, stopped, released] = await Promise.all([
      child.logged({ event: 'worker.stopping' }),
      child.logged({ event: 'worker.stopped', released: 1 }),
      child.logged({ event: 'job.released', outcome: 'released' }),
    ])
    expect(released).toMatchObject({ job: 'job', attempt: 1 })
    const tookMs = Number(stopped['time']) - Number(stopping['time'])
    expect(tookMs).toBeGreaterThanOrEqual(290)
    expect(tookMs).toBeLessThan(2_000)
  })

  test('exits with 0 at once if nothing runs', async () => {
    const child = work(write('idle.mjs', oneJob('')))
    await child.logged({ event: 'job.completed' })
    child.kill('SIGTERM')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
  })

  test('gives up on a handler that ignores its abort, logs it, and exits despite open handles', async () => {
    const child = work(write('deaf.mjs', oneJob(FOR_EVER)), '--drain', '100ms')
    await child.line('began 1')
    child.kill('SIGTERM')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.out).toEqual(['began 1', 'state ready'])
    await child.logged({ event: 'cli.stuck', stuck: 1 })
    expect(await child.line('still open')).toContain('1 Timeout')
  })

  test('before anything ran exits with 130', async () => {
    const child = work(
      write('loading.mjs', `console.log('loading'); await new Promise(() => setInterval(() => {}, 1_000))`),
    )
    await child.line('loading')
    child.kill('SIGINT')
    expect(await child.ended()).toEqual({ code: 130, signal: null })
  })
})

describe('more signals', () => {
  test('the second hurries: running jobs are aborted and given back', async () => {
    const child = work(write('hurry.mjs', oneJob(UNTIL_ABORTED)))
    await child.line('began 1')
    child.kill('SIGTERM')
    await child.logged({ event: 'cli.stopping', running: 1 })
    child.kill('SIGINT')
    expect(await child.ended()).toEqual({ code: 130, signal: null })
    expect(child.out).toEqual(['began 1', 'state ready'])
  })

  test('the third exits at once', async () => {
    const child = work(write('deaf.mjs', oneJob(FOR_EVER)))
    await child.line('began 1')
    child.kill('SIGTERM')
    await child.logged({ event: 'cli.stopping' })
    child.kill('SIGINT')
    await child.logged({ event: 'cli.hurried' })
    child.kill('SIGTERM')
    expect(await child.ended()).toEqual({ code: 130, signal: null })
    expect(child.out).toEqual(['began 1'])
  })
})

describe('the end of the process', () => {
  test('comes by itself when the module closes its holdfast()', async () => {
    const child = work(write('closes.mjs', oneJob(`setImmediate(() => hf.close())`)))
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    await child.logged({ event: 'worker.stopped' })
  })

  test('does not wait for a job that is due in an hour', async () => {
    const child = work(
      write('later.mjs', `${oneJob('')}\nawait job.enqueue(undefined, { in: '1h' })`),
      '--lease',
      '5s',
    )
    await child.logged({ event: 'job.completed' })
    child.kill('SIGTERM')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.err.join('\n')).not.toContain('still open')
  })

  test('does not wait for handles that the module left open, and names them', async () => {
    const child = work(
      write('open.mjs', `${oneJob('')}\nimport net from 'node:net'; net.createServer().listen(0)`),
    )
    await child.logged({ event: 'job.completed' })
    child.kill('SIGTERM')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(await child.line('still open')).toContain('TCPServerWrap')
  })

  test('by kill -9 leaves no process and no lock behind', async () => {
    const file = write('killed.mjs', oneJob(UNTIL_ABORTED))
    const before = files()
    const child = work(file)
    await child.line('began 1')
    child.kill('SIGKILL')
    expect(await child.ended()).toEqual({ code: null, signal: 'SIGKILL' })
    expect(child.groupLives()).toBe(false)
    expect(files()).toEqual(before)

    const next = work(file)
    await next.line('began 1')
  })
})
