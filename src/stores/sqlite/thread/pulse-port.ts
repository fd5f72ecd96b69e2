/** The part of the store's thread that renews leases while the main loop is blocked, as `Pulses` speaks to a thread. */
import { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort, type TransferListItem } from 'node:worker_threads'
import { toError } from '../../../std/text.ts'
import type { ToPulseThread } from '../../pulse/keeper.ts'
import type { PulseThread } from '../../pulse/pulse.ts'
import type { ThreadLink } from './link.ts'

export class PulsePort extends EventEmitter implements PulseThread {
  readonly #port: MessagePort

  constructor(link: ThreadLink) {
    super()
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    port1.on('message', (message) => this.emit('message', message))
    port1.on('close', () => this.emit('exit'))
    link.pulse(port2).catch((error: unknown) => {
      this.emit('error', toError(error))
      port1.close()
    })
  }

  postMessage(message: ToPulseThread, transfer: readonly TransferListItem[] = []): void {
    this.#port.postMessage(message, transfer)
  }

  unref(): void {
    this.#port.unref()
  }

  terminate(): void {
    this.#port.close()
  }
}
