/** The default for a store's option `onNotice`: a warning of the process. */
export function warnOfNotice(line: string): void {
  process.emitWarning(line, 'HoldfastWarning')
}
