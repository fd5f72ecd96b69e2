/** Holdfast on PostgreSQL beside graphile-worker, pg-boss and BullMQ. */
import { fileURLToPath } from 'node:url'
import type { Contest } from '../contest/contest.ts'
import { BARS } from './bars.ts'
import { FIGURES, type PostgresFigure } from './figures.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { PostgresBenchServer, SERVER_SETTINGS } from './server.ts'
import { PEERS, SETTINGS, SHARES, type PostgresPeer } from './settings.ts'
import { sizesOf, type PostgresSizes } from './sizes.ts'

export const POSTGRES: Contest<PostgresFigure, PostgresPeer, PostgresBenchServer, PostgresSizes> = {
  peers: PEERS,
  settings: SETTINGS,
  shares: SHARES,
  serverSettings: SERVER_SETTINGS,
  startServer: () => PostgresBenchServer.start(),
  main: fileURLToPath(new URL('../dist/postgres/child/main.js', import.meta.url)),
  figures: FIGURES,
  bars: BARS,
  scenarios: SCENARIOS,
  sizes: sizesOf,
}
