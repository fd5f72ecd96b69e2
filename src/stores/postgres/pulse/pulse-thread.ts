/** The thread that renews leases in PostgreSQL. */
import { workerData } from 'node:worker_threads'
import { systemClock } from '../../../std/clock.ts'
import { keepPulses } from '../../pulse/keeper.ts'
import { PostgresPulseLink, type PostgresPulse } from './pulse-link.ts'

keepPulses(new PostgresPulseLink(workerData as PostgresPulse, systemClock))
