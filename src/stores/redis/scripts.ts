/**
 * The Lua scripts. Each file begins with what it guarantees. A script consists of the prelude, the files of functions
 * that it names ("Uses: …"), and itself. Redis functions (FUNCTION LOAD) would replace the code of old workers during a
 * rolling deploy; a script runs as its own program wrote it.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

export type ScriptName =
  | 'add_shards'
  | 'change'
  | 'cycle'
  | 'dead_groups'
  | 'enqueue'
  | 'enqueue_unique'
  | 'expired_leases'
  | 'expired_workers'
  | 'fire'
  | 'fire_later'
  | 'forget_workers'
  | 'gather'
  | 'has_token'
  | 'heartbeat'
  | 'lead'
  | 'lease_of_worker'
  | 'list_notes'
  | 'list_schedules'
  | 'list_shards'
  | 'match'
  | 'oldest'
  | 'outbox'
  | 'pause'
  | 'promote'
  | 'prune'
  | 'put_note'
  | 'put_schedule'
  | 'queues'
  | 'read'
  | 'register'
  | 'remove_from_outbox'
  | 'renew'
  | 'rescue'
  | 'retire'
  | 'sweep'
  | 'takeover'
  | 'walk'

export interface Script {
  readonly text: string
  /** The server knows the script by this digest once it has run. */
  readonly sha: string
  /** Script to run before it on a new connection. */
  readonly greeting: Script | null
}

export interface Scripts {
  get(name: ScriptName): Script
}

const FOLDER = new URL('lua/', import.meta.url)
/** The prelude's one expression for the time, in µs. */
const SERVER_TIME = 'time[1] * 1e6 + time[2]'

/** Files of functions that are made only when the function around this line runs. */
const INCLUDE = /^ *-- Include: (.*)\.$/gm

/** Maps a file's name (without `.lua`) and text to the text that is used, for tests that plant bugs. */
export type EditScript = (file: string, text: string) => string

/** `timeUs`: a Lua expression for the time, for tests with a clock of their own. */
export function readScripts(timeUs: string = SERVER_TIME, edit: EditScript = (_, text) => text): Scripts {
  const known = new Map<ScriptName, Script>()
  const read = (file: string): string => edit(file, source(file))
  return {
    get(name) {
      const found = known.get(name) ?? compose(name, timeUs, read)
      known.set(name, found)
      return found
    },
  }
}

/** Only a script that hands out tokens needs to know which tokens this server never handed out. */
const GREETINGS: Partial<Record<ScriptName, ScriptName>> = { cycle: 'takeover' }

function compose(name: ScriptName, timeUs: string, read: (file: string) => string): Script {
  const own = read(name)
  const uses = /^-- Uses: (.*)\.$/m.exec(own)?.[1]?.split(', ') ?? []
  const prelude = read('prelude').replace(SERVER_TIME, timeUs)
  const text = [prelude, ...uses.map(read), own]
    .join('\n')
    .replace(INCLUDE, (_, files: string) => files.split(', ').map(read).join('\n'))
  const first = GREETINGS[name]
  const greeting = first === undefined ? null : compose(first, timeUs, read)
  return { text, sha: createHash('sha1').update(text).digest('hex'), greeting }
}

const sources = new Map<string, string>()

function source(name: string): string {
  const found = sources.get(name) ?? readFileSync(new URL(`${name}.lua`, FOLDER), 'utf8')
  sources.set(name, found)
  return found
}
