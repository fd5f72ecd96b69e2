/**
 * Named prepared statements save parsing and planning, but live in one connection of the server. A pooler that hands
 * out another one for each transaction (PgBouncer before 1.21) loses them: 'auto' notices, and does without from then
 * on.
 */
import { createHash } from 'node:crypto'
import type { Statement } from './statement.ts'
import { isLostStatement } from '../server-errors.ts'

export class Preparing {
  readonly #policy: boolean | 'auto'
  readonly #onNotice: (line: string) => void
  readonly #names = new Map<string, string>()
  #on: boolean

  constructor(policy: boolean | 'auto', onNotice: (line: string) => void) {
    this.#policy = policy
    this.#onNotice = onNotice
    this.#on = policy !== false
  }

  /** Name of the prepared statement; undefined if it is not to be prepared. */
  nameOf({ name, text }: Statement): string | undefined {
    if (!this.#on) return undefined
    let unique = this.#names.get(text)
    if (unique === undefined) {
      // The digest keeps two versions of Holdfast apart behind one pooler: the text of the old one must not run under
      // our name.
      const digest = createHash('sha256').update(text).digest('hex').slice(0, 12)
      unique = `${name.slice(0, 50)}_${digest}`
      this.#names.set(text, unique)
    }
    return unique
  }

  /** Whether the statement failed only because of its name, so that it can be sent again without one. */
  givesUp(error: unknown): boolean {
    if (this.#policy !== 'auto' || !isLostStatement(error)) return false
    if (this.#on) {
      this.#on = false
      this.#onNotice(
        'Prepared statements do not survive on this connection (a pooler in transaction mode?): going on without them, somewhat slower. Set `prepare: false` to skip this check.',
      )
    }
    return true
  }
}
