import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type * as Sqlite from 'holdfast/sqlite'
import { load, type Library } from '../../contest/child/contender.ts'
import { holdfastLibrary } from '../../contest/child/holdfast.ts'
import { serve } from '../../contest/child/serve.ts'
import { OTHER, UNSYNCED, type ChildConfig } from '../../contest/protocol.ts'
import { directoryOf } from '../server.ts'
import { BARE, SETTINGS } from '../settings.ts'
import { bareLibrary } from './bare.ts'
import { plainjobLibrary } from './plainjob.ts'

async function unsyncedLibrary(config: ChildConfig): Promise<Library> {
  const store = pathToFileURL(join(dirname(config.build), 'stores/sqlite/index.js'))
  const { sqliteStore } = await load<typeof Sqlite>(store.href)
  const directory = directoryOf(config.url)
  return holdfastLibrary(config, SETTINGS.holdfast, sqliteStore({ directory, durability: 'normal' }))
}

await serve(
  new Map([
    ['holdfast', (config) => holdfastLibrary(config, SETTINGS.holdfast)],
    [UNSYNCED, unsyncedLibrary],
    [OTHER, (config) => holdfastLibrary(config, SETTINGS.holdfast)],
    ['plainjob', plainjobLibrary],
    [BARE, bareLibrary],
  ]),
)
