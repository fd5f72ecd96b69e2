/** The jobs of the kill soak on SQLite. */
import { dirname } from 'node:path'
import { killWork } from '../../support/kill-work.ts'
import { NOTE_EFFECT, openEffects } from './effects.ts'

const directory = (process.env['HOLDFAST_STORE'] ?? '').replace(/^file:/, '')
const effects = await openEffects(dirname(directory))

// Prepared each time, because a statement does not keep its database from being collected.
export const work = killWork((job, fence) =>
  Promise.resolve(effects.prepare(NOTE_EFFECT).run(job, Number(fence))),
)
