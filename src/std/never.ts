/** The end of an exhaustive switch: a new member of the union breaks the build where it is not handled. */
export function assertNever(value: never): never {
  throw new Error(`Unexpected value: ${JSON.stringify(value)}`)
}
