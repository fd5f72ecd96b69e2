import { holdfastLibrary } from '../../contest/child/holdfast.ts'
import { serve } from '../../contest/child/serve.ts'
import { OTHER } from '../../contest/protocol.ts'
import { SETTINGS } from '../settings.ts'
import { bullmqPgLibrary } from './bullmq-pg.ts'
import { graphileLibrary } from './graphile-worker.ts'
import { pgBossLibrary } from './pg-boss.ts'

await serve(
  new Map([
    ['holdfast', (config) => holdfastLibrary(config, SETTINGS.holdfast)],
    [OTHER, (config) => holdfastLibrary(config, SETTINGS.holdfast)],
    ['graphile-worker', graphileLibrary],
    ['pg-boss', pgBossLibrary],
    ['bullmq-pg', bullmqPgLibrary],
  ]),
)
