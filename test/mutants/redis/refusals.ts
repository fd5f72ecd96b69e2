/** Arguments that no client of ours sends: each script refuses them before it writes anything, because Lua rolls nothing back. */
import assert from 'node:assert/strict'
import { Redis } from 'ioredis'
import { newFlushId, newJobs, newWorkerId } from '../../../src/stores/conformance/support.ts'
import { packId } from '../../../src/stores/redis/ids.ts'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { readScripts, type ScriptName } from '../../../src/stores/redis/scripts.ts'
import { oneShard } from '../../../src/stores/redis/shards.ts'
import { freshPrefix } from '../../support/servers/redis-store.ts'
import type { EditText } from '../mutant.ts'

type Args = readonly (string | number)[]

/** What a script can be asked about. */
interface Scene {
  readonly worker: string
  /** Two leases of a job each. */
  readonly tokens: readonly [number, number]
  readonly lost: { readonly worker: string; readonly token: number }
  /** Packed ids. */
  readonly waiting: string
  readonly fresh: readonly [string, string]
}

interface Refusal {
  readonly script: ScriptName
  readonly args: (scene: Scene) => Args
}

const ERROR = '{"fingerprint":"f"}'

/** The first lease is settled well; the second one badly. */
const settle = (mode: string, details: Args): Refusal => ({
  script: 'cycle',
  args: ({ worker, tokens }) =>
    [worker, '', 0, 0, 1, '', 2].concat(
      [tokens[0], 'c', 1, 0, ',1,0,null'],
      [tokens[1], mode, 1, 0],
      [...details],
    ),
})

/** The settle is a good one. */
const report = (...parts: Args): Refusal => ({
  script: 'cycle',
  args: ({ worker, tokens }) =>
    [worker, '', 0, 0, 1, '', 1].concat([tokens[0], 'c', 1, 0, ',1,0,null'], [100, tokens[1], 0], [...parts]),
})

const rescue = (...decided: Args): Refusal => ({
  script: 'rescue',
  args: ({ lost }) => [20, lost.token, lost.worker, 1, 0, ...decided],
})

/** A good job first. */
const enqueue = (kind: string, ...due: Args): Refusal => ({
  script: 'enqueue',
  args: ({ fresh: [first, second] }) =>
    ['sender', 1, 2].concat(
      ['default', 0, 'n', 1, first, '"default","job",5,1,1]\n{}'],
      ['default', 0, kind, 1, second, ...due, '"default","job",5,1,1]\n{}'],
    ),
})

const keyed = (hold: string, onConflict: string, due = ''): Refusal => ({
  script: 'enqueue_unique',
  args: ({ fresh: [first, second] }) =>
    ['sender', 1, 2].concat(
      [first, 'default', 0, '', '"default","job",5,1,1]\n{}', '', '', ''],
      [second, 'default', 0, due, '"default","job",5,1,1,"key","u"]\n{}', 'key', hold, onConflict],
    ),
})

const edit = (...parts: Args): Refusal => ({
  script: 'change',
  args: ({ waiting }) => ['edit', JSON.stringify(parts), '{}', waiting],
})

const REFUSED: Readonly<Record<string, Refusal>> = {
  'a settlement of an unknown kind': settle('m', ['["z",1]']),
  'a settlement without its value': settle('m', ['["r"]']),
  'a settlement whose value is null': settle('m', ['["r",null]']),
  'a settlement that is not a list': settle('m', ['"x"']),
  'a settlement that is not JSON': settle('m', ['[[']),
  'a dead job without an error': settle('m', ['["d"]']),
  'a dead job whose error is null': settle('m', ['["d",false,"null"]']),
  'a retry without an error': settle('m', ['["r",1]']),
  'a record without the number to keep': settle('m', ['["l",false,false,"{}"]']),
  'a settlement of an unknown mode': settle('q', [',1,0,null']),
  'a settlement without its detail': settle('c', []),
  'a report with a part missing': report('{}'),
  'a report with fewer lines than it says': report('{}', 2, 'a line'),
  'a rescue to an unknown state': rescue('z', 1, 0, ERROR, '{}'),
  'a rescue to dead without an error': rescue('d', 1, 0, 'null', '{}'),
  'a rescue without its record': rescue('s', 1, 0, ERROR),
  'a rescue whose delay is not a number': rescue('s', 1, 'soon', ERROR, '{}'),
  'a job of an unknown kind': enqueue('z', '+5'),
  'a job that is due at an unknown time': enqueue('d', '?5'),
  'a job that is due at NaN': enqueue('d', '@NaN'),
  'a unique key with an unknown hold': keyed('z', 'ignore'),
  'a unique key with an unknown conflict rule': keyed('u', 'z'),
  'a unique job that is due at an unknown time': keyed('u', 'ignore', '5'),
  'a change of an unknown kind': { script: 'change', args: ({ waiting }) => ['z', '""', '{}', waiting] },
  'an edit to an unknown time': edit('', '', '', '?5'),
  'an edit of half a rank': edit('', '5', '', '-'),
  'a pause that is neither on nor off': { script: 'pause', args: () => ['default', 'z'] },
}

async function openScene(url: string, prefix: string): Promise<Scene> {
  const store = redisStore({ url, prefix, onNotice: () => undefined })
  await store.open()
  const [worker, lost] = [newWorkerId(), newWorkerId()]
  for (const one of [worker, lost]) await store.register(one, 30_000)
  await store.enqueue({ id: newFlushId(), jobs: newJobs(3) })
  const claim = { queue: 'default', limit: 1, suspects: false }
  const claimAs = async (one: typeof worker): Promise<number> =>
    (await store.cycle({ worker: one, settle: [], claim })).leases[0]!.token
  const tokens = [await claimAs(worker), await claimAs(worker)] as const
  const token = await claimAs(lost)
  await store.retire(lost)
  const [waiting] = newJobs(1, { due: { inMs: 60_000 } })
  await store.enqueue({ id: newFlushId(), jobs: [waiting!] })
  await store.close()
  const [first, second] = newJobs(2)
  return {
    worker,
    tokens,
    lost: { worker: lost, token },
    waiting: packId(waiting!.id),
    fresh: [packId(first!.id), packId(second!.id)],
  }
}

/** Every key of the prefix as it is. */
async function contents(redis: Redis, prefix: string): Promise<Record<string, string | undefined>> {
  const keys = (await redis.keys(`${prefix}:*`)).sort()
  const dumps = await Promise.all(keys.map((key) => redis.dumpBuffer(key)))
  return Object.fromEntries(keys.map((key, index) => [key, dumps[index]?.toString('hex')]))
}

async function refuses({ script, args }: Refusal, url: string, edited?: EditText): Promise<void> {
  const prefix = freshPrefix()
  const scene = await openScene(url, prefix)
  const redis = new Redis(url)
  try {
    const { keys } = oneShard(prefix).control
    const { text } = readScripts(undefined, edited).get(script)
    const before = await contents(redis, prefix)
    await assert.rejects(redis.eval(text, keys.length, ...keys, ...args(scene)), /^ReplyError: HFREFUSED /)
    assert.deepEqual(await contents(redis, prefix), before)
  } finally {
    redis.disconnect()
  }
}

/** By title, for a server and the scripts as they are edited. */
export const REFUSALS: Readonly<Record<string, (url: string, edited?: EditText) => Promise<void>>> =
  Object.fromEntries(
    Object.entries(REFUSED).map(([what, refusal]) => [
      `${what} is refused, and nothing is written`,
      (url: string, edited?: EditText) => refuses(refusal, url, edited),
    ]),
  )
