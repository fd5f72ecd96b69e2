import { describe, expect, test } from 'vitest'
import { fakeIo, type FakeIo } from '../../test/support/fake-io.ts'
import { packageJson } from '../../test/support/tree.ts'
import { run } from './program.ts'

async function command(...args: string[]): Promise<FakeIo & { code: number }> {
  const io = fakeIo()
  return { ...io, code: await run(args, io) }
}

/** The help of the program, and of every command that it lists. */
async function helpOfEach(): Promise<readonly string[][]> {
  const [, listed = ''] = (await command('--help')).out().split('\nCommands:\n')
  const names = [...listed.matchAll(/^ {2}([a-z]+) \[/gm)].map(([, name = '']) => name)
  expect(names).toContain('work')
  return [['--help'], ...names.filter((name) => name !== 'help').map((name) => [name, '--help'])]
}

describe('holdfast', () => {
  test('tells its version and its help on stdout', async () => {
    expect(await command('--version')).toMatchObject({ code: 0 })
    expect((await command('--version')).out().trim()).toBe(packageJson.version)
    for (const args of [['help'], ['help', 'work'], ...(await helpOfEach())]) {
      const { code, out, err } = await command(...args)
      expect({ code, err: err() }, args.join(' ')).toEqual({ code: 0, err: '' })
      expect(out()).toContain('Usage: holdfast')
    }
  })

  test('has a help that fits into 80 columns', async () => {
    for (const args of await helpOfEach()) {
      const long = (await command(...args))
        .out()
        .split('\n')
        .filter((line) => line.length > 80)
      expect(long).toEqual([])
    }
  })

  test('without a command shows the help on stderr', async () => {
    const { code, out, err } = await command()
    expect({ code, out: out() }).toEqual({ code: 2, out: '' })
    expect(err()).toContain('Usage: holdfast')
  })

  test.for([
    [['wrok'], 'Did you mean work?'],
    [['work'], "missing required argument 'file'"],
    [['work', 'a.ts', 'b.ts'], 'too many arguments'],
    [['work', 'a.ts', '--queue', 'mail'], 'Did you mean --queues?'],
    [['work', 'a.ts', '--queues', 'mail=0'], 'above zero'],
    [['work', 'a.ts', '--concurrency', 'many'], 'whole number'],
    [['work', 'a.ts', '--drain', '30'], '250ms, 30s'],
    [['work', 'a.ts', '--log', 'loud'], 'Allowed choices are tidy, json'],
    [['work', 'a.ts', '--log-level', 'trace'], 'Allowed choices are debug'],
    [['demo', '--seconds', '0'], 'above zero'],
    [['demo', '--rate', 'fast'], 'above zero'],
    [['backup'], "missing required argument 'file'"],
  ] as const)('refuses %s with a hint', async ([args, hint]) => {
    const { code, out, err } = await command(...args)
    expect({ code, out: out() }).toEqual({ code: 2, out: '' })
    expect(err()).toContain(hint)
    expect(err()).toContain('holdfast --help')
  })

  test('prints the SQL of the schema, under other names', async () => {
    const { code, out } = await command('schema')
    expect(code).toBe(0)
    expect(out()).toContain('create table "holdfast"."ready"')
    expect((await command('schema', '--schema', 'jobs', '--prefix', 'app_')).out()).toContain(
      'create table "jobs"."app_ready"',
    )
    const refused = await command('schema', '--schema', 'my jobs')
    expect(refused.code).toBe(2)
    expect(refused.err()).toContain('HF_BAD_OPTION')
  })

  test('prints what went wrong once, and leaves no listener behind', async () => {
    const { code, err, signals } = await command('work', 'no-such-file.ts')
    expect(code).toBe(3)
    expect(err()).toMatch(/^error: There is no file .*no-such-file\.ts\. \[HF_BAD_MODULE\]\n {2}hint: .*\n$/)
    expect(signals.eventNames()).toEqual([])
  })

  test('shows stacks with --verbose before or after the command, and with DEBUG', async () => {
    expect((await command('work', 'no-such-file.ts', '--verbose')).err()).toContain('    at ')
    expect((await command('--verbose', 'work', 'no-such-file.ts')).err()).toContain('    at ')
    const io = fakeIo({ env: { DEBUG: '*' } })
    await run(['work', 'no-such-file.ts'], io)
    expect(io.err()).toContain('    at ')
  })
})
