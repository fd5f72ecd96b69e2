/** Which calls are under way, and which of them may still act although nobody waits for their answer any more. */
import type { Call, InvokeEvent } from './history.ts'

export class Calls {
  readonly open = new Map<number, InvokeEvent>()
  readonly #possible = new Map<string, number>()
  readonly #lastPossibleSeq = new Map<string, number>()

  begin(event: InvokeEvent): void {
    this.open.set(event.op, event)
    const kind = kindOf(event.call)
    this.#possible.set(kind, (this.#possible.get(kind) ?? 0) + 1)
  }

  /** `settled`: the call is over for good; otherwise its request may still be on its way. */
  end(event: InvokeEvent, endSeq: number, settled: boolean): void {
    this.open.delete(event.op)
    if (!settled) return
    const kind = kindOf(event.call)
    this.#possible.set(kind, (this.#possible.get(kind) ?? 1) - 1)
    this.#lastPossibleSeq.set(kind, endSeq)
  }

  /** Whether such a call may act now. */
  possible(kind: string): boolean {
    return (this.#possible.get(kind) ?? 0) > 0
  }

  /** Whether such a call may have acted after this moment. */
  possibleSince(kind: string, seq: number): boolean {
    return this.possible(kind) || (this.#lastPossibleSeq.get(kind) ?? 0) > seq
  }
}

/** Bulk changes count by what they do. */
function kindOf(call: Call): string {
  return call.kind === 'change' ? call.action : call.kind
}
