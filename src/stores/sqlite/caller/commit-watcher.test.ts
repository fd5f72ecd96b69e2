import { DatabaseSync } from '@photostructure/sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'vitest'
import { Signal } from '../../../../test/support/signal.ts'
import { pragma } from './handle.ts'
import { CommitWatcher } from './commit-watcher.ts'

test('news that could not be read are told with the next look', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-watcher-'))
  const open = () => new DatabaseSync(join(folder, 'app.db'))
  const [own, other] = [open(), open()]
  own.exec('pragma journal_mode = wal; create table t (a)')
  const signal = new Signal()
  let told = 0
  const onNews = (): Promise<void> => {
    told++
    signal.notify()
    return told === 1 ? Promise.reject(new Error('a disk that fails')) : Promise.resolve()
  }
  const watcher = new CommitWatcher(() => String(pragma(own, 'data_version')), onNews)
  watcher.start()
  other.exec('insert into t values (1)')
  await signal.until(() => told === 2)
  watcher.stop()
  own.close()
  other.close()
  rmSync(folder, { recursive: true, force: true })
})
