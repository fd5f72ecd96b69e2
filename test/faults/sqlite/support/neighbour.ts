/** A thread of the test's process that opens a store of its own, enqueues a job, and stays until it is told to go. */
import { parentPort, workerData } from 'node:worker_threads'
import { newFlushId, newJob } from '../../../../src/stores/conformance/support.ts'
import { sqliteStore } from '../../../../src/stores/sqlite/index.ts'

const store = sqliteStore({ directory: workerData as string, onNotice: () => undefined })
const job = newJob()
await store.enqueue({ id: newFlushId(), jobs: [job] })
parentPort?.once('message', () => void store.close().then(() => parentPort?.close()))
parentPort?.postMessage(job.id)
