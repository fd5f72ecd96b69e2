/**
 * The scripts as files: readable as they stand, each headed by what it guarantees. A script is put together from the
 * prelude, the files of functions that it names ("Uses: …"), and itself. Functions of Redis (FUNCTION LOAD) would be
 * swapped under old workers in a rolling deploy; a script is its own text, whoever runs beside it.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

export type ScriptName =
  | 'bury'
  | 'change'
  | 'cycle'
  | 'edit'
  | 'enqueue'
  | 'enqueue_unique'
  | 'fire'
  | 'fire_later'
  | 'has_token'
  | 'heartbeat'
  | 'know_shards'
  | 'lead'
  | 'lease_of_worker'
  | 'list_notes'
  | 'list_schedules'
  | 'list_shards'
  | 'mortals'
  | 'oldest'
  | 'orphans'
  | 'outbox'
  | 'pause'
  | 'present'
  | 'promote'
  | 'prune'
  | 'put_note'
  | 'put_schedule'
  | 'queues'
  | 'read'
  | 'register'
  | 'reign'
  | 'remove_note'
  | 'remove_schedule'
  | 'renew'
  | 'report'
  | 'rescue'
  | 'resign'
  | 'retire'
  | 'scan'
  | 'strike_off'
  | 'sweep'

export interface Script {
  readonly text: string
  /** By which the server knows it once it has run. */
  readonly sha: string
  /** What runs before it when a connection is new. */
  readonly greeting: Script | null
}

export interface Scripts {
  get(name: ScriptName): Script
}

const FOLDER = new URL('lua/', import.meta.url)
/** The prelude's one expression for the time, in µs. */
const SERVER_TIME = 'time[1] * 1e6 + time[2]'

/** `timeUs`: a Lua expression for the time, for tests that render the scripts for another one. */
export function readScripts(timeUs: string = SERVER_TIME): Scripts {
  const known = new Map<ScriptName, Script>()
  return {
    get(name) {
      const found = known.get(name) ?? compose(name, timeUs)
      known.set(name, found)
      return found
    },
  }
}

/** Only who hands out tokens has to know which of them nobody here has ever handed out. */
const GREETINGS: Partial<Record<ScriptName, ScriptName>> = { cycle: 'reign' }

function compose(name: ScriptName, timeUs: string): Script {
  const own = source(name)
  const uses = /^-- Uses: (.*)\.$/m.exec(own)?.[1]?.split(', ') ?? []
  const prelude = source('prelude').replace(SERVER_TIME, timeUs)
  const text = [prelude, ...uses.map(source), own].join('\n')
  const first = GREETINGS[name]
  const greeting = first === undefined ? null : compose(first, timeUs)
  return { text, sha: createHash('sha1').update(text).digest('hex'), greeting }
}

const sources = new Map<string, string>()

function source(name: string): string {
  const found = sources.get(name) ?? readFileSync(new URL(`${name}.lua`, FOLDER), 'utf8')
  sources.set(name, found)
  return found
}
