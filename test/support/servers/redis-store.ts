/** Redis stores for tests, each with its own prefix and a clock that can be advanced. A recount checks them at the end. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import type { StoreUnderTest } from '../../../src/stores/conformance/index.ts'
import type { RedisStoreOptions } from '../../../src/stores/redis/index.ts'
import { redisStoreWith } from '../../../src/stores/redis/redis-store.ts'
import { readScripts, type EditScript, type Scripts } from '../../../src/stores/redis/scripts.ts'

/** A unique prefix. */
export function freshPrefix(): string {
  return `test-${randomBytes(8).toString('hex')}`
}

export interface RedisStoreSetup extends RedisStoreOptions {
  /** Whether the store's clock only moves by `advance`. */
  readonly frozen?: boolean
  /** Maximum number of jobs that one list or bulk change examines. */
  readonly budget?: number
  /** Changes the scripts as they are loaded. */
  readonly edit?: EditScript
  /** Called before each script is sent. */
  readonly onScript?: (name: string) => void
}

const FROZEN_MS = Date.UTC(2030, 0, 1)

/** A store with its own prefix. The scripts are rendered with the shifted clock. */
export async function openRedisStore(setup: RedisStoreSetup): Promise<StoreUnderTest> {
  const { frozen = false, budget, edit, onScript, ...options } = setup
  let offsetMs = 0
  const render = (): Scripts =>
    readScripts(`${frozen ? `${FROZEN_MS * 1000}` : 'time[1] * 1e6 + time[2]'} + ${offsetMs * 1000}`, edit)
  let scripts = render()
  const store = redisStoreWith(
    { prefix: freshPrefix(), onNotice: () => undefined, ...options },
    {
      get(name) {
        onScript?.(name)
        return scripts.get(name)
      },
    },
    budget,
  )
  await store.open()
  return {
    store,
    advance: async (ms) => {
      offsetMs += Math.round(ms)
      scripts = render()
    },
    close: () => store.close(),
  }
}

/** The same, with a recount of all counters and indexes at the end. Not on a cluster. */
export async function openAuditedStore(
  setup: RedisStoreSetup & { readonly url: string },
): Promise<StoreUnderTest> {
  const prefix = freshPrefix()
  const under = await openRedisStore({ prefix, ...setup })
  return {
    ...under,
    close: async () => {
      await under.close()
      assert.deepEqual(await audit(setup.url, setup.prefix ?? prefix), [], 'a recount of the store')
    },
  }
}

const AUDIT = readFileSync(new URL('redis-audit.lua', import.meta.url), 'utf8')

/** The errors that a recount finds in a store, in words. */
async function audit(url: string, prefix: string): Promise<string[]> {
  const redis = new Redis(url)
  try {
    return (await redis.eval(AUDIT, 1, `${prefix}:{${prefix}}:`)) as string[]
  } finally {
    redis.disconnect()
  }
}
