import { holdfastLibrary } from '../../contest/child/holdfast.ts'
import { serve } from '../../contest/child/serve.ts'
import { SETTINGS } from '../settings.ts'
import { graphileLibrary } from './graphile-worker.ts'
import { pgBossLibrary } from './pg-boss.ts'

await serve(
  new Map([
    ['holdfast', (config) => holdfastLibrary(config, SETTINGS.holdfast)],
    ['graphile-worker', graphileLibrary],
    ['pg-boss', pgBossLibrary],
  ]),
)
