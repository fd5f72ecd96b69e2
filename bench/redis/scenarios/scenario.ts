import type { Scenario } from '../../contest/scenarios/scenario.ts'
import type { RedisFigure } from '../figures.ts'
import type { RedisBenchServer } from '../server.ts'
import type { RedisSizes } from '../sizes.ts'

export type RedisScenario = Scenario<RedisFigure, RedisBenchServer, RedisSizes>
