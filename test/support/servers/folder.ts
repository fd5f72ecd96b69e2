/** The folder of one server below the system's temporary one, and the account that the server runs under. */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { chown, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export interface Account {
  readonly uid: number
  readonly gid: number
}

/** PostgreSQL and PgBouncer refuse to run as root; undefined where we are somebody else anyway. */
export function serverAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  for (const wanted of ['postgres', 'nobody']) {
    const found = accounts.find(([name]) => name === wanted)
    if (found !== undefined) return { uid: Number(found[2]), gid: Number(found[3]) }
  }
  throw new Error('PostgreSQL refuses to run as root, and there is no user "postgres" or "nobody".')
}

export async function makeFolder(name: string, account: Account | undefined): Promise<string> {
  // Root may have a temporary folder of its own, which nobody else can enter.
  const parent = account === undefined || isOpenToAll(tmpdir()) ? tmpdir() : '/tmp'
  const folder = await mkdtemp(join(parent, `holdfast-${name}-`))
  if (account !== undefined) await chown(folder, account.uid, account.gid)
  return folder
}

/** Whether any account can come to it: a clone below /root mostly is not. */
export function isOpenToAll(path: string): boolean {
  for (let at = realpathSync(path); ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}
