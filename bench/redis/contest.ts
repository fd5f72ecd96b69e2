/** Holdfast on Redis beside BullMQ and bee-queue. */
import { fileURLToPath } from 'node:url'
import type { Contest } from '../contest/contest.ts'
import { BARS } from './bars.ts'
import { FIGURES, type RedisFigure } from './figures.ts'
import { SCENARIOS } from './scenarios/index.ts'
import { RedisBenchServer, SERVER_SETTINGS } from './server.ts'
import { PEERS, SETTINGS, type RedisPeer } from './settings.ts'
import { FULL, QUICK, type RedisSizes } from './sizes.ts'

export const REDIS: Contest<RedisFigure, RedisPeer, RedisBenchServer, RedisSizes> = {
  peers: PEERS,
  settings: SETTINGS,
  serverSettings: SERVER_SETTINGS,
  startServer: () => RedisBenchServer.start(),
  main: fileURLToPath(new URL('../dist/redis/child/main.js', import.meta.url)),
  figures: FIGURES,
  bars: BARS,
  scenarios: SCENARIOS,
  sizes: ({ quick }) => (quick ? QUICK : FULL),
}
