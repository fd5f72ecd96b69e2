/** The thread that renews leases in Redis. */
import { workerData } from 'node:worker_threads'
import { systemClock } from '../../../std/clock.ts'
import { systemRandom } from '../../../std/random.ts'
import { keepPulses } from '../../pulse/keeper.ts'
import { RedisPulseLink, type RedisPulse } from './pulse-link.ts'

keepPulses(new RedisPulseLink(workerData as RedisPulse, systemClock, systemRandom))
