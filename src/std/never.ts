/** Ends an exhaustive switch: the build fails if a new member of the union is not handled. */
export function assertNever(value: never): never {
  throw new Error(`Unexpected value: ${JSON.stringify(value)}`)
}
