/** The jobs of one holdfast(), by name. */
import { HoldfastError } from '../errors.ts'
import type { RunFunction } from '../job/context.ts'
import type { JobDefinition } from '../job/definition.ts'
import { notFound } from '../job/not-found.ts'

export class JobRegistry {
  readonly #definitions = new Map<string, JobDefinition>()

  add(definition: JobDefinition): void {
    if (this.#definitions.has(definition.name)) {
      throw new HoldfastError('HF_DUPLICATE_JOB', `There is already a job named "${definition.name}".`)
    }
    this.#definitions.set(definition.name, definition)
  }

  /** Gives a contract its handler. */
  implement(name: string, run: RunFunction): JobDefinition {
    if (typeof run !== 'function')
      throw new HoldfastError('HF_BAD_JOB', `Contract "${name}" was given no function to implement it.`)
    const contract = this.#definitions.get(name)
    if (contract === undefined) throw notFound('contract', name)
    if (contract.run !== undefined) {
      throw new HoldfastError('HF_DUPLICATE_JOB', `Contract "${name}" is implemented already.`)
    }
    const definition = Object.freeze({ ...contract, run })
    this.#definitions.set(name, definition)
    return definition
  }

  get(name: string): JobDefinition | undefined {
    return this.#definitions.get(name)
  }

  all(): readonly JobDefinition[] {
    return [...this.#definitions.values()]
  }
}
