/** Lists, changes and groups, read to their end: a page may be short or empty and still have a `next`. */
import assert from 'node:assert/strict'
import type { JobId } from '../../job/ids.ts'
import type { JobRecord } from '../../job/record.ts'
import { mergeGroups } from '../dead-groups.ts'
import { MAX_SCAN, type JobChange, type DeadGroup, type JobFilter, type Page } from '../store.ts'
import { changeJobs, idsOf, type Harness } from './support.ts'

const MOST_PAGES = 500

/** Calls `page` from each `next` until that is null; `between` happens after each page but the last. */
async function eachPage(
  page: (after: JobId | null) => Promise<Page>,
  between: (page: number) => Promise<unknown> = async () => undefined,
): Promise<void> {
  let after: JobId | null = null
  for (let count = 0; count < MOST_PAGES; count++) {
    const { next, looked } = await page(after)
    assert.ok(Number.isInteger(looked) && looked >= 0 && looked <= MAX_SCAN, `${looked} jobs were looked at`)
    if (next === null) return
    after = next
    await between(count)
  }
  assert.fail('the pages have no end')
}

export interface PagesOptions {
  /** @default 100 */
  readonly limit?: number
  readonly between?: (page: number) => Promise<unknown>
}

export async function recordsOf(
  harness: Harness,
  filter: JobFilter,
  { limit = 100, between }: PagesOptions = {},
): Promise<JobRecord[]> {
  const found: JobRecord[] = []
  await eachPage(async (after) => {
    const page = await harness.store.admin.list({ ...filter, limit, after })
    assert.ok(page.jobs.length <= limit, 'a page has no more than its limit')
    assert.ok(page.looked >= page.jobs.length, 'what is listed was looked at')
    found.push(...page.jobs)
    return page
  }, between)
  return found
}

export async function listed(
  harness: Harness,
  filter: JobFilter,
  options: PagesOptions = {},
): Promise<JobId[]> {
  return idsOf(await recordsOf(harness, filter, options))
}

export async function changeAll(
  harness: Harness,
  filter: JobFilter,
  action: JobChange,
  limit = 100,
): Promise<{ readonly changed: number; readonly skipped: number }> {
  const sum = { changed: 0, skipped: 0 }
  await eachPage(async (after) => {
    const answer = await changeJobs(harness.store, filter, action, limit, after)
    assert.ok(answer.changed + answer.skipped <= limit, 'a step has no more than its limit')
    sum.changed += answer.changed
    sum.skipped += answer.skipped
    return answer
  })
  return sum
}

export async function groupsOf(
  harness: Harness,
  filter: JobFilter = {},
  limit = 100,
): Promise<readonly DeadGroup[]> {
  const found: DeadGroup[] = []
  await eachPage(async (after) => {
    const page = await harness.store.admin.deadGroups(filter, limit, after)
    found.push(...page.groups)
    return page
  })
  return mergeGroups(found)
}
