import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test } from 'vitest'
import { isProcessGone, judge, ownProcess, type Place, type Sighting } from './process-identity.ts'
import { readProcessStat } from './process-stat.ts'

const isLinux = process.platform === 'linux'
const children: ChildProcess[] = []

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
})

/** A waiting process and its identity. */
async function otherProcess(): Promise<{ child: ChildProcess; pid: number; identity: string }> {
  const script = `
    const { ownProcess } = await import(${JSON.stringify(new URL('process-identity.ts', import.meta.url).href)})
    process.stdin.resume()
    console.log(ownProcess())`
  const child = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, pid: child.pid!, identity: chunk.toString().trim() }
}

/** Blocks the event loop, because Node would reap a dead child in its next turn. */
function awaitState(pid: number, state: string): void {
  for (;;) {
    const stat = readProcessStat(pid)
    if (typeof stat !== 'object') throw new Error(`Process ${pid} is ${stat}.`)
    if (stat.state === state) return
  }
}

describe('a process that runs', () => {
  test('is not gone', async () => {
    expect(isProcessGone(ownProcess()!)).toBe(false)
    const { identity, pid } = await otherProcess()
    expect(identity).toContain(String(pid))
    expect(isProcessGone(identity)).toBe(false)
  })

  test('has one name in all its threads', async () => {
    const script = `
      require('tsx/cjs/api').register()
      const { ownProcess } = require(${JSON.stringify(new URL('process-identity.ts', import.meta.url).pathname)})
      require('node:worker_threads').parentPort.postMessage(ownProcess())`
    const thread = new Worker(script, { eval: true })
    const [identity] = (await once(thread, 'message')) as [string]
    await thread.terminate()
    expect(identity).toBe(ownProcess())
  })

  test.runIf(isLinux)('is not gone while it is stopped', async () => {
    const { identity, pid } = await otherProcess()
    process.kill(pid, 'SIGSTOP')
    awaitState(pid, 'T')
    expect(isProcessGone(identity)).toBe(false)
  })
})

describe('a process that was killed', () => {
  test('is gone', async () => {
    const { child, identity } = await otherProcess()
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(isProcessGone(identity)).toBe(true)
  })

  test.runIf(isLinux)('is gone before its parent has collected it', async () => {
    const { pid, identity } = await otherProcess()
    process.kill(pid, 'SIGKILL')
    awaitState(pid, 'Z')
    expect(isProcessGone(identity)).toBe(true)
  })

  test.runIf(isLinux)('is gone although another process has its pid', () => {
    const [scope, boot, pid, startTime] = JSON.parse(ownProcess()!)
    expect(isProcessGone(JSON.stringify([scope, boot, pid, startTime - 1]))).toBe(true)
  })
})

describe('the judgement', () => {
  const here: Place = { scope: 'linux pid:[4026531836]', boot: 'b1' }
  const seen = (startTime: number | null): Sighting => ({ startTime })
  const gone = (identity: unknown, sighting: Sighting, place: Place | null = here): boolean =>
    judge(JSON.stringify(identity), place, () => sighting)

  test.each([
    ['it is seen', seen(500), false],
    ['its pid is free', 'gone', true],
    ['another process has its pid', seen(501), true],
    ['it cannot be seen', 'unknown', false],
  ] as const)('in the same namespace and boot, if %s', (_name, sighting, expected) => {
    expect(gone([here.scope, here.boot, 7, 500], sighting)).toBe(expected)
  })

  test('asks for the pid of the identity', () => {
    const asked: number[] = []
    const look = (pid: number): Sighting => {
      asked.push(pid)
      return 'gone'
    }
    judge(JSON.stringify([here.scope, here.boot, 7, 500]), here, look)
    expect(asked).toEqual([7])
  })

  test('is gone if the machine was restarted, whoever has the pid now', () => {
    expect(gone([here.scope, 'b0', 7, 500], seen(500))).toBe(true)
  })

  test('says nothing about another namespace, not even after a restart', () => {
    expect(gone(['linux pid:[4026532177]', here.boot, 7, 500], 'gone')).toBe(false)
    // LXC gives each container its own boot id.
    expect(gone(['linux pid:[4026532177]', 'b0', 7, 500], 'gone')).toBe(false)
  })

  test('says nothing if this process does not know where it is', () => {
    expect(gone([here.scope, here.boot, 7, 500], 'gone', null)).toBe(false)
  })

  test('goes by the pid alone where no start time is known', () => {
    const mac: Place = { scope: 'darwin mini.local', boot: '' }
    expect(gone([mac.scope, '', 7, null], 'gone', mac)).toBe(true)
    expect(gone([mac.scope, '', 7, null], seen(null), mac)).toBe(false)
    expect(gone([mac.scope, '', 7, null], 'unknown', mac)).toBe(false)
    expect(gone(['darwin other.local', '', 7, null], 'gone', mac)).toBe(false)
  })

  test.each([
    '',
    'not JSON',
    'null',
    '{}',
    '[]',
    `["${here.scope}","b1",7]`,
    `["${here.scope}","b1","7",500]`,
    `["${here.scope}","b1",0,500]`,
    `["${here.scope}","b1",-7,500]`,
    `["${here.scope}","b1",7.5,500]`,
    `["${here.scope}","b1",7,"500"]`,
    `["${here.scope}",null,7,500]`,
  ])('says nothing about the malformed text %j', (text) => {
    expect(judge(text, here, () => 'gone')).toBe(false)
    expect(isProcessGone(text)).toBe(false)
  })
})
