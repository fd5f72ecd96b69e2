/** Disks that are full or fail: nothing acknowledged is lost, the error says what to do, and work goes on afterwards. */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { until } from '../../support/until.ts'
import { FailingDisk } from './support/failing-disk.ts'
import { Member, type MemberError } from './support/member.ts'
import { audited, folderForStores, rowsOf } from './support/place.ts'

const folder = folderForStores()
const disk = FailingDisk.compile(folder)
const IN_A_BURST = 20
/** Past what each process keeps in its log and caches. */
const LARGE = 'x'.repeat(1_000)

afterEach(async () => {
  disk?.works()
  await Member.endAll()
})

async function enqueueError(member: Member): Promise<MemberError> {
  return member.do('enqueue', 1, {}).then(
    () => Promise.reject(new Error('It was acknowledged.')),
    (error: unknown) => error as MemberError,
  )
}

async function completed(directory: string): Promise<ReadonlySet<string>> {
  const rows = await rowsOf<{ id: string }>(
    directory,
    `select job.id from holdfast_ended join holdfast_job as job using (seq) where state = 'completed'`,
  )
  return new Set(rows.map(({ id }) => id))
}

async function allComplete(directory: string, ids: readonly string[]): Promise<void> {
  await until('every acknowledged job to complete', async () => {
    const done = await completed(directory)
    return ids.every((id) => done.has(id))
  })
}

describe.skipIf(disk === null)('a process whose disk fails', () => {
  const outage = { code: 'HF_STORE_UNREACHABLE', hint: expect.stringContaining('Check the disk') as string }
  const full = { code: 'HF_STORE_FULL', hint: expect.stringContaining('Make room') as string }

  test.each([
    ['that fails to sync', 'EIO', 'fsync', outage],
    ['that fails to write', 'EIO', 'pwrite', outage],
    ['that finds no room for a write', 'ENOSPC', 'pwrite', full],
    ['that finds no room when it syncs', 'ENOSPC', 'fsync', full],
    ['whose quota is used up', 'EDQUOT', 'pwrite', full],
  ] as const)('%s is told what to do, loses nothing and goes on', async (what, error, call, told) => {
    const directory = join(folder, what.replaceAll(' ', '-'))
    const member = await Member.withStore(directory, Member.start(process.execPath, disk?.env))
    await member.do('work', { concurrency: 5 })
    const { ids: before } = await member.do('enqueue', IN_A_BURST, {})
    disk?.fails(error, call)
    expect(await enqueueError(member)).toMatchObject(told)
    disk?.works()
    const { ids: after } = await member.do('enqueue', IN_A_BURST, {})
    await allComplete(directory, [...before, ...after])
    await member.kill()
    expect(await audited(directory)).toEqual([])
  })
})

const mountedAt = join(folder, 'small')
const mount = (...args: readonly string[]): boolean => spawnSync('mount', args).status === 0
mkdirSync(mountedAt)
const isMounted = process.platform === 'linux' && mount('-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', mountedAt)
if (!isMounted) console.warn('No small disk, so its test is skipped: only root may mount one, on Linux.')
afterAll(() => void (isMounted && spawnSync('umount', ['-l', mountedAt])))

describe.skipIf(!isMounted)('a disk that is full', () => {
  test('refuses jobs, keeps all that it took, and goes on when there is room', async () => {
    const directory = join(mountedAt, 'store')
    const member = await Member.withStore(directory)
    const ids: string[] = []
    let error: MemberError | undefined
    while (error === undefined)
      await member.do('enqueue', IN_A_BURST, { text: LARGE }).then(
        (answer) => ids.push(...answer.ids),
        (thrown: unknown) => (error = thrown as MemberError),
      )
    expect(error).toMatchObject({ code: 'HF_STORE_FULL', hint: expect.stringContaining('Make room') })
    expect(ids.length).toBeGreaterThan(IN_A_BURST)
    await member.do('work', { concurrency: 5 }).catch(() => undefined)
    expect(mount('-o', 'remount,size=50m', mountedAt)).toBe(true)
    await member.do('work', { concurrency: 5 }).catch(() => undefined)
    await allComplete(directory, ids)
    await member.kill()
    expect(await audited(directory)).toEqual([])
  })
})
