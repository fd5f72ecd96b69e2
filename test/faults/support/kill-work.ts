/** What the workers of the kill soak have in common, in processes of their own that `holdfast work` starts. */
import { Fatal, holdfast } from 'holdfast'
import { anything, type Behaviour } from './behaviour.ts'

/** What the soak is told. */
export type FromWorker = { readonly type: 'worker'; readonly id: string } | { readonly type: 'lost' }

/** Notes an effect of the job, but never by a lease that is older than the last one that did. */
export type NoteEffect = (job: string, fence: string) => Promise<unknown>

/** Its result is the fence under which it was completed. */
export function killWork(noteEffect: NoteEffect) {
  const tell = (message: FromWorker): void => void process.send?.(message)
  // Nobody is left to stop us once the soak itself is gone.
  process.on('disconnect', () => process.exit(1))
  process.channel?.unref()

  const hf = holdfast()
  hf.on('worker.started', ({ worker: id }) => tell({ type: 'worker', id }))
  hf.on('worker.reregistered', ({ worker: id }) => tell({ type: 'worker', id }))
  hf.on('job.lost', () => tell({ type: 'lost' }))
  return hf.job({
    name: 'work',
    input: anything<Behaviour>(),
    retry: { attempts: 3, delay: 100, maxDelay: 400, crashes: 50 },
    async run({ input, job, fence }) {
      await new Promise((resolve) => setTimeout(resolve, input.ms))
      await noteEffect(job.id, String(fence))
      if (input.fails < job.attempt) return String(fence)
      throw input.fatal ? new Fatal('hopeless') : new Error('went wrong')
    },
  })
}
