/** Recognises a handle by its functions, because Holdfast depends on none of the libraries. */
import { HoldfastError } from '../../../errors.ts'

/** Runs one statement in the caller's transaction, and returns the library's result. */
export type Send = (text: string, values: (string | null)[]) => PromiseLike<unknown>

/** Undefined for a handle of another library; throws for one of this library that is not an open transaction. */
export type Recognise = (tx: object) => Send | undefined

export type Callable = (...args: unknown[]) => unknown

export function has<Name extends string>(value: object, ...names: Name[]): value is Record<Name, Callable> {
  return names.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
}

/** A field that may be missing. */
export function field(value: object, name: string): unknown {
  return (value as Record<string, unknown>)[name]
}

export function notInTransaction(what: string, hint: string): HoldfastError {
  return new HoldfastError(
    'HF_BAD_OPTION',
    `{ tx } is ${what}: what is written through it counts at once, with or without the rest.`,
    { hint },
  )
}
