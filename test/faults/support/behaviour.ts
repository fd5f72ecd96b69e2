/** How a job's handler behaves, as its payload says. */
export interface Behaviour {
  readonly intent: string
  readonly ms: number
  /** So many attempts fail; a fatal one ends it. */
  readonly fails: number
  readonly fatal: boolean
}

/** A schema that takes everything: the payloads are ours. */
export function anything<T>() {
  return {
    '~standard': {
      version: 1 as const,
      vendor: 'faults',
      validate: (value: unknown) => ({ value: value as T }),
      types: undefined as unknown as { input: T; output: T },
    },
  }
}
