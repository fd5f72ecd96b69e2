/** `holdfast backup`: a copy of the embedded store. */
import { HoldfastError } from '../errors.ts'
import { directoryOf } from '../stores/from-url.ts'
import { backupStore } from '../stores/sqlite/backup.ts'
import type { Io } from './io.ts'

export interface BackupFlags {
  readonly store?: string
}

export async function backup(file: string, flags: BackupFlags, io: Io): Promise<void> {
  const store = flags.store ?? (io.env['HOLDFAST_STORE'] || 'file:.holdfast')
  if (!store.startsWith('file:'))
    throw new HoldfastError('HF_BAD_STORE', 'Only an embedded store can be copied to a file.', {
      hint: 'Use --store file:…, or the tools of your server: pg_dump, or a copy of the Redis dump file.',
    })
  await backupStore(directoryOf(store), file)
  io.stderr.write(`Copied ${store} to ${file}.\n`)
}
