/**
 * The append-only file as the store's own record: every write that Redis kept, in order, the writes of one script together.
 * It does not contain times or refused requests.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withRedis } from './commands.ts'

export type Command = readonly Buffer[]

/** One entry per script or single command, with all of its writes. The file must never have been rewritten. */
export async function readAppendOnly(url: string): Promise<Command[][]> {
  const folder = await withRedis(url, async (redis) => {
    const [, found] = (await redis.config('GET', 'dir')) as [string, string]
    return found
  })
  return filesIn(folder).flatMap((path) => transactions(commandsIn(readFileSync(path))))
}

/** Redis before version 7 has one file. Later versions have a folder, in which only the increments contain commands. */
function filesIn(folder: string): string[] {
  const parts = join(folder, 'appendonlydir')
  if (!existsSync(parts)) return [join(folder, 'appendonly.aof')]
  const number = (name: string): number => Number(/\.(\d+)\.incr\.aof$/.exec(name)?.[1] ?? -1)
  return readdirSync(parts)
    .filter((name) => number(name) >= 0)
    .sort((a, b) => number(a) - number(b))
    .map((name) => join(parts, name))
}

/** As clients send them: `*2`, then each part as `$5` and its bytes. */
function* commandsIn(file: Buffer): Generator<Command> {
  let at = 0
  const line = (): string => {
    const end = file.indexOf('\r\n', at)
    const text = file.toString('latin1', at, end)
    at = end + 2
    return text
  }
  while (at < file.length) {
    const head = line()
    // A remark, such as the time.
    if (head.startsWith('#')) continue
    if (!head.startsWith('*')) throw new Error(`The append-only file makes no sense before byte ${at}.`)
    yield Array.from({ length: Number(head.slice(1)) }, () => {
      const length = Number(line().slice(1))
      const part = file.subarray(at, at + length)
      at += length + 2
      return part
    })
  }
}

function transactions(commands: Iterable<Command>): Command[][] {
  const all: Command[][] = []
  let open: Command[] | undefined
  for (const command of commands) {
    const name = command[0]?.toString().toUpperCase()
    if (name === 'MULTI') open = []
    else if (name === 'EXEC') {
      all.push(open ?? [])
      open = undefined
    } else if (open === undefined) all.push([command])
    else open.push(command)
  }
  return all
}
