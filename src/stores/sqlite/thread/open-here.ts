/**
 * Keeps one process from opening a database with two SQLite libraries, which lose data (see `files/already-open.ts`). A
 * file that is open in this process is refused unless a store of ours answers that it opened it with the same library: in
 * this thread or in another, in this copy of Holdfast or, after a hot reload, in another one.
 */
import { statSync } from 'node:fs'
import { BroadcastChannel, threadId } from 'node:worker_threads'
import { systemClock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import { refuseIfOpen } from '../files/already-open.ts'

type Message =
  | { readonly type: 'ask'; readonly from: string; readonly library: string }
  | { readonly type: 'same library'; readonly to: string }

/** Longer than a store's thread is busy with one transaction, or with opening the file. */
const ANSWER_MS = 5_000

/** Reaches every thread of this process. */
function channelOf(database: string): BroadcastChannel {
  const { dev, ino } = statSync(database, { bigint: true })
  const channel = new BroadcastChannel(`holdfast.sqlite:${dev}:${ino}`)
  channel.unref()
  return channel
}

/** Answers others of this process, from before the file is opened until after it is closed. Returns how to end that. */
export function answerOthers(database: string, library: string): () => void {
  const channel = channelOf(database)
  channel.onmessage = (event) => {
    const message = (event as { readonly data: Message }).data
    if (message.type === 'ask' && message.library === library)
      channel.postMessage({ type: 'same library', to: message.from } satisfies Message)
  }
  return () => channel.close()
}

/** To be called before the file is opened. */
export async function refuseOtherLibrary(database: string, library: string): Promise<void> {
  try {
    refuseIfOpen(database)
  } catch (error) {
    if (!(await isSameLibrary(database, library))) throw error
  }
}

function isSameLibrary(database: string, library: string): Promise<boolean> {
  const channel = channelOf(database)
  const own = `${threadId}.${systemRandom.uint32()}`
  return new Promise<boolean>((resolve) => {
    const cancel = systemClock.after(ANSWER_MS, () => resolve(false))
    channel.onmessage = (event) => {
      const message = (event as { readonly data: Message }).data
      if (message.type !== 'same library' || message.to !== own) return
      cancel()
      resolve(true)
    }
    channel.postMessage({ type: 'ask', from: own, library } satisfies Message)
  }).finally(() => channel.close())
}
