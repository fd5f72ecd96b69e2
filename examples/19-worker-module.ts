// A module for the command line: `npx holdfast work examples/19-worker-module.ts` runs the jobs that it exports.
import { fileURLToPath } from 'node:url'
import { holdfast } from 'holdfast'
import { z } from 'zod'

const hf = holdfast({ queues: { default: {}, mail: {} } })

export const welcome = hf.job({
  name: 'welcome',
  queue: 'mail',
  input: z.object({ to: z.email() }),
  run: ({ input, log }) => log.info(`welcome, ${input.to}`),
})

export const cleanUp = hf.job({
  name: 'clean-up',
  priority: 'background',
  run: ({ log }) => log.info('all is tidy'),
})

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log('Nothing runs by itself here: npx holdfast work examples/19-worker-module.ts')
}
