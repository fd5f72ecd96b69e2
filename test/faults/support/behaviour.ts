/** How a job's handler behaves, as its payload says. */
export interface Behaviour {
  readonly intent: string
  readonly ms: number
  /** How many attempts fail. If `fatal`, the first failure is final. */
  readonly fails: number
  readonly fatal: boolean
}

/** A schema that accepts everything, because the payloads are our own. */
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
