/** Edits of jobs that wait: one script, in the shard that has the job. */
import type { JobId } from '../../job/ids.ts'
import type { Admin, JobEdit } from '../store.ts'
import { dueText } from './bodies.ts'
import type { RedisValue } from './driver.ts'
import { packKnown } from './ids.ts'
import type { Run } from './run.ts'
import type { Shards } from './shards.ts'

type EditAnswer = Awaited<ReturnType<Admin['edit']>>

/** As edit.lua names them. */
const ANSWERS: Readonly<Record<string, EditAnswer>> = { e: 'edited', u: 'running', f: 'final' }

export async function edit(run: Run, shards: Shards, id: JobId, change: JobEdit): Promise<EditAnswer> {
  const packed = packKnown(id)
  if (packed === null) return 'missing'
  const args = [packed, ...editArgs(change)]
  const all = await shards.all()
  const letters = await Promise.all(all.map((shard) => run<string>(shard, 'edit', args)))
  // One shard has it, if any.
  return letters.flatMap((letter) => ANSWERS[letter] ?? [])[0] ?? 'missing'
}

function editArgs({ payload = '', rank, due }: JobEdit): RedisValue[] {
  const place = rank === undefined ? ['', ''] : [rank.priority, Math.round(rank.headStartMs)]
  return [payload, ...place, due === undefined ? '-' : dueText(due)]
}
