/**
 * Polling, for facts that only another process knows: what a server counts, what a child process has done. Wait for what
 * a listener in this process hears with `Signal`.
 */

const DEADLINE_MS = 25_000
const EVERY_MS = 10

/** Asks until the answer is yes. `what` completes the sentence "Waited in vain for …". */
export async function until(
  what: string,
  fact: () => boolean | Promise<boolean>,
  { deadlineMs = 60_000, everyMs = 25 }: { deadlineMs?: number; everyMs?: number } = {},
): Promise<void> {
  const deadline = performance.now() + deadlineMs
  while (!(await fact())) {
    if (performance.now() > deadline) throw new Error(`Waited ${deadlineMs} ms in vain for ${what}.`)
    await pause(everyMs)
  }
}

/** Asks until the assertions of `look` hold. Rejects at the deadline with the last one that failed. */
export async function eventually(look: () => unknown): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS
  for (;;) {
    try {
      await look()
      return
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
    await pause(EVERY_MS)
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
