import { describe, expect, test } from 'vitest'
import { project } from './support/project.ts'

const { run } = project()

describe('the demo in a pipe', () => {
  test('prints a line per second, exits by itself, and accounts for every job', async () => {
    const child = run('demo', '--seconds', '2', '--rate', '40')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.out[0]).toMatch(/^ +0:01 {2}in \d+\.\d\/s {2}out .* ready \d+ .* dead \d+ /)
    const last = child.out.slice(-3)
    expect(last[0]).toMatch(/^Stopped after/)
    expect(last[1]).toMatch(/^ {2}enqueued \d+ {3}completed \d+ {3}retried \d+ /)
    expect(last[2]).toMatch(/: none lost$/)
    expect(child.err).toEqual([])
    expect(child.out.join('')).not.toContain('\u001b')
  })

  test('stops cleanly when it is told to', async () => {
    const child = run('demo', '--plain')
    await child.line('in ')
    child.kill('SIGINT')
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    await child.line(/: none lost$/)
  })

  test('stops when its output is closed', async () => {
    const child = run('demo')
    await child.line('in ')
    child.hangUp()
    expect(await child.ended()).toEqual({ code: 0, signal: null })
    expect(child.err).toEqual([])
  })
})
