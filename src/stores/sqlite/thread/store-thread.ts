/** The thread that owns the connection to the database. */
import { parentPort, workerData } from 'node:worker_threads'
import { StoreService } from './service.ts'
import type { StoreData } from './protocol.ts'

if (parentPort !== null) await StoreService.start(parentPort, workerData as StoreData)
