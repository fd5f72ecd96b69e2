/** What the schedulers of the schedule soak run, in processes of their own: jobs that do nothing, each with a schedule. */
import { holdfast } from 'holdfast'

/** What the soak is told. */
export type FromScheduler =
  | { readonly type: 'elected' | 'deposed' }
  /** The store has answered that this process fired the tick. */
  | { readonly type: 'fired'; readonly schedule: string; readonly tick: number }

const tell = (message: FromScheduler | { readonly type: 'worker'; readonly id: string }): void =>
  void process.send?.(message)
// Nobody is left to stop us once the soak itself is gone.
process.on('disconnect', () => process.exit(1))
process.channel?.unref()

const hf = holdfast()
hf.on('worker.started', ({ worker: id }) => tell({ type: 'worker', id }))
hf.on('leader.elected', () => tell({ type: 'elected' }))
hf.on('leader.lost', () => tell({ type: 'deposed' }))
hf.on('schedule.fired', ({ schedule, tick }) => tell({ type: 'fired', schedule, tick: tick.getTime() }))

// A schedule that stands in a job's definition has the job's name: so a job tells by itself whose tick it is.
const names = (process.env['SOAK_SCHEDULES'] ?? '').split(' ')
export const ticks = names.map((name) =>
  hf.job({ name, schedule: { every: '1s', catchUp: 'all' }, run: () => undefined }),
)
