/** The thread that owns the connection to the database. */
import { parentPort, workerData } from 'node:worker_threads'
import { StoreService } from './thread/service.ts'
import type { StoreData } from './thread/protocol.ts'

if (parentPort !== null) await StoreService.start(parentPort, workerData as StoreData)
