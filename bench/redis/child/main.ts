import { holdfastLibrary } from '../../contest/child/holdfast.ts'
import { serve } from '../../contest/child/serve.ts'
import { OTHER } from '../../contest/protocol.ts'
import { SETTINGS } from '../settings.ts'
import { beeQueueLibrary } from './bee-queue.ts'
import { bullmqLibrary } from './bullmq.ts'

await serve(
  new Map([
    ['holdfast', (config) => holdfastLibrary(config, SETTINGS.holdfast)],
    [OTHER, (config) => holdfastLibrary(config, SETTINGS.holdfast)],
    ['bullmq', bullmqLibrary],
    ['bee-queue', beeQueueLibrary],
  ]),
)
