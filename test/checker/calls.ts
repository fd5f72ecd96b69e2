/** Which calls are under way, and which of them may still act although nobody waits for their answer any more. */
import type { Call, InvokeEvent } from './history.ts'

/** The kinds that somebody asks about. Bulk changes count by what they do. */
type Acting = 'rescue' | 'prune' | 'discard' | 'replay' | 'cancel'

interface Acts {
  /** Under way, or without an answer. */
  possible: number
  /** When the last one was over that cannot act any more. */
  lastSeq: number
}

export class Calls {
  readonly open = new Map<number, InvokeEvent>()
  readonly #acts: Readonly<Record<Acting, Acts>> = {
    rescue: { possible: 0, lastSeq: 0 },
    prune: { possible: 0, lastSeq: 0 },
    discard: { possible: 0, lastSeq: 0 },
    replay: { possible: 0, lastSeq: 0 },
    cancel: { possible: 0, lastSeq: 0 },
  }

  begin(event: InvokeEvent): void {
    this.open.set(event.op, event)
    const kind = actingOf(event.call)
    if (kind !== null) this.#acts[kind].possible++
  }

  /** `settled`: the call is over for good; otherwise its request may still be on its way. */
  end(event: InvokeEvent, endSeq: number, settled: boolean): void {
    this.open.delete(event.op)
    const kind = settled ? actingOf(event.call) : null
    if (kind === null) return
    this.#acts[kind].possible--
    this.#acts[kind].lastSeq = endSeq
  }

  /** Whether such a call may act now. */
  possible(kind: Acting): boolean {
    return this.#acts[kind].possible > 0
  }

  /** Whether such a call may have acted after this moment. */
  possibleSince(kind: Acting, seq: number): boolean {
    return this.possible(kind) || this.#acts[kind].lastSeq > seq
  }
}

function actingOf(call: Call): Acting | null {
  switch (call.kind) {
    case 'rescue':
    case 'prune':
    case 'cancel':
      return call.kind
    case 'change':
      return call.action
    default:
      return null
  }
}
