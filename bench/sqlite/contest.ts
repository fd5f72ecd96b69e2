/** Holdfast on SQLite, with both durabilities, beside plainjob. */
import { fileURLToPath } from 'node:url'
import type { Contest } from '../contest/contest.ts'
import { UNSYNCED } from '../contest/protocol.ts'
import { BARS } from './bars.ts'
import { FIGURES, type SqliteFigure } from './figures.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { SqliteBenchServer } from './server.ts'
import { PEERS, SETTINGS, type SqlitePeer } from './settings.ts'
import { FULL, QUICK, type SqliteSizes } from './sizes.ts'

export const SQLITE: Contest<SqliteFigure, SqlitePeer, SqliteBenchServer, SqliteSizes> = {
  peers: PEERS,
  settings: SETTINGS,
  variants: [UNSYNCED],
  serverSettings: {},
  startServer: (node) => SqliteBenchServer.start(node),
  main: fileURLToPath(new URL('../dist/sqlite/child/main.js', import.meta.url)),
  figures: FIGURES,
  bars: BARS,
  scenarios: SCENARIOS,
  sizes: ({ quick }) => (quick ? QUICK : FULL),
}
