/**
 * Checks whether a server can be used, when the store is opened. INFO has all that is needed; many providers forbid
 * CONFIG.
 */
import { HoldfastError } from '../../errors.ts'
import type { Executor } from './executor.ts'
import { noDatabase, notACluster, unreachable } from './server-errors.ts'

export interface BootRules {
  readonly allowEviction: boolean
  readonly onNotice: (line: string) => unknown
}

const OLDEST = [6, 2] as const

export async function checkServer(
  executor: Executor,
  rules: BootRules & { readonly db: number },
): Promise<void> {
  await checkNode(executor, rules, 'alone')
  await checkDatabase(executor, rules.db)
}

/**
 * Reads back where we are: a proxy may accept a SELECT and do nothing about it, and jobs would land among another
 * app's.
 */
async function checkDatabase(executor: Executor, db: number): Promise<void> {
  const facts = await ask(executor, 'CLIENT', ['INFO'])
  const found = facts === null ? undefined : /(?:^|\s)db=(\d+)/.exec(facts)?.[1]
  if (found === undefined || Number(found) === db) return
  throw noDatabase(`The connection is in database ${found} of Redis, although database ${db} was asked for.`)
}

/** Checks each node; a notice that concerns several nodes is emitted once. */
export async function checkCluster(nodes: readonly Executor[], rules: BootRules): Promise<void> {
  const told = new Set<string>()
  const onNotice = (line: string): unknown => told.add(line)
  await Promise.all(nodes.map((node) => checkNode(node, { ...rules, onNotice }, 'cluster')))
  for (const line of told) rules.onNotice(line)
}

async function checkNode(executor: Executor, rules: BootRules, expected: 'alone' | 'cluster'): Promise<void> {
  const facts = await askServer(executor)
  if (facts === null) {
    rules.onNotice('Redis forbids INFO, so its version and its persistence settings could not be checked.')
    return
  }
  refuseUnusable(facts)
  refuseOtherMode(facts, expected)
  checkEviction(facts.get('maxmemory_policy'), rules)
  if (facts.get('aof_enabled') === '0') {
    rules.onNotice(
      'Redis runs without an append-only file: jobs since its last snapshot are lost when it stops. Turn appendonly on.',
    )
  }
}

/** Null where that is forbidden. */
async function askServer(executor: Executor): Promise<ReadonlyMap<string, string> | null> {
  const text = await ask(executor, 'INFO', [])
  const lines = text?.split(/\r?\n/).filter((line) => line.includes(':'))
  if (lines === undefined) return null
  return new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)] as const),
  )
}

/** Null where that is forbidden. */
async function ask(executor: Executor, command: string, args: readonly string[]): Promise<string | null> {
  try {
    return String(await executor.command(command, args))
  } catch (error) {
    if (isForbidden(error)) return null
    throw error
  }
}

/** Forbidden by an ACL, or renamed away; a wrong password is neither. */
function isForbidden(error: unknown): boolean {
  const { cause = error } = error instanceof HoldfastError ? error : { cause: error }
  return cause instanceof Error && /NOPERM|unknown (sub)?command/i.test(cause.message)
}

function refuseUnusable(facts: ReadonlyMap<string, string>): void {
  const version = facts.get('redis_version') ?? ''
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (version !== '' && (major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]))) {
    throw new HoldfastError('HF_BAD_STORE', `The server is Redis ${version}; the store needs 6.2 or newer.`, {
      hint: 'Upgrade the server, or use another one.',
    })
  }
  // Both are temporary, so they are worth another try.
  if (facts.get('loading') === '1') throw unreachable('Redis is still loading its data.')
  if (facts.get('role') === 'slave') throw unreachable('The server is a replica, which takes no writes.')
}

function refuseOtherMode(facts: ReadonlyMap<string, string>, expected: 'alone' | 'cluster'): void {
  const isCluster = facts.get('redis_mode') === 'cluster' || facts.get('cluster_enabled') === '1'
  if (isCluster === (expected === 'cluster')) return
  throw isCluster
    ? new HoldfastError('HF_BAD_STORE', 'The server is part of a Redis Cluster.', {
        hint: "Say so in the URL: 'redis-cluster://host:6379'.",
      })
    : notACluster()
}

function checkEviction(policy: string | undefined, { allowEviction, onNotice }: BootRules): void {
  if (policy === 'noeviction') return
  if (policy === undefined) {
    onNotice(
      'Redis does not tell what it does when it is full: make sure that maxmemory-policy is noeviction.',
    )
    return
  }
  if (!allowEviction) {
    throw new HoldfastError(
      'HF_STORE_EVICTS',
      `Redis evicts keys when it is full (maxmemory-policy is ${policy}): jobs would be lost silently.`,
    )
  }
  onNotice(`Redis evicts keys when it is full (maxmemory-policy is ${policy}): jobs can be lost.`)
}
