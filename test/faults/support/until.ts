/** Polls a fact that another process brings about. What it is completes "waited in vain for …". */
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

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
