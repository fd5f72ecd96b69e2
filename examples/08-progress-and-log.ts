// A handler reports progress and log lines; anyone with the handle can watch.
import { EventEmitter, once } from 'node:events'
import { holdfast } from 'holdfast'

const hf = holdfast({ logger: false })
const viewer = new EventEmitter()
const convert = hf.job({
  name: 'convert-video',
  async run({ progress, log }) {
    log.info('opened the file', { seconds: 90 })
    progress(45, 90, 'first half')
    // watch() yields the newest state, not every one: wait here, so that the output is always the same.
    await once(viewer, 'seen')
    log.warn('the audio track is empty')
    progress(90, 90, 'second half')
  },
})

// Log lines are kept with the job, and emitted as events; the default logger shows warnings and errors.
hf.on('job.log', ({ job, level, message, fields }) => console.log(job, level, message, fields))

await hf.work()
const job = await convert.enqueue()
for await (const { state, progress, note } of job.watch()) {
  if (progress === null) continue
  console.log(`${state}, ${progress * 100} %: ${note}`)
  viewer.emit('seen')
}
await hf.close()
