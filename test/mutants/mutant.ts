/**
 * Bugs that are planted in the text of a store's scripts when it is loaded. Each names the tests that must notice it. A
 * mutant that no longer fits its file is an error, not a pass.
 */
export interface TextMutant {
  readonly name: string
  /** Name of the file, as the store reads it. */
  readonly file: string
  /** Occurs exactly once in the file. */
  readonly find: string
  readonly replace: string
  /** Titles in the conformance suite or among the tests of this kind of store, or MODEL: each of them must fail. */
  readonly caughtBy: readonly string[]
}

/** Stands for the model test among the titles of the conformance suite. */
export const MODEL = 'the model test'

export type EditText = (file: string, text: string) => string

/** What edits the texts of a store, and whether it has found its place. */
export interface Planted {
  readonly edit: EditText
  readonly isPlanted: () => boolean
}

export function plant({ name, file, find, replace }: TextMutant): Planted {
  let planted = false
  return {
    isPlanted: () => planted,
    edit(one, text) {
      if (one !== file) return text
      const parts = text.split(find)
      if (parts.length !== 2)
        throw new Error(`mutant "${name}" fits ${file} in ${parts.length - 1} places, not in one`)
      planted = true
      return parts.join(replace)
    },
  }
}
