/**
 * Writes down every move of a job by triggers, in the transaction of the move itself, and judges whether each was allowed:
 * a settle under a lease that the job is not under any more must not have been accepted.
 */
import type { Database } from '../../../../src/stores/sqlite/driver.ts'

const INSTALL = `
  create table moved (nth integer primary key autoincrement, seq integer not null, what text not null, token integer);
  create trigger moved_ready after insert on holdfast_ready begin
    insert into moved (seq, what) values (new.seq, 'waits');
  end;
  create trigger moved_scheduled after insert on holdfast_scheduled begin
    insert into moved (seq, what) values (new.seq, 'waits');
  end;
  create trigger moved_leased after insert on holdfast_leased begin
    insert into moved (seq, what, token) select value, 'runs', new.token from json_each(new.seqs);
  end;
  create trigger moved_ended after insert on holdfast_ended begin
    insert into moved (seq, what, token) values (new.seq, new.state, new.token);
  end;
  create trigger moved_revoked after insert on holdfast_revoked begin
    insert into moved (seq, what, token)
    select value, 'revoked', new.token from holdfast_leased, json_each(seqs)
    where holdfast_leased.token = new.token and (new.done is null or substr(new.done, key + 1, 1) = '0');
  end;
`

export function installMoveLog(database: Database): void {
  database.exec(`begin immediate; ${INSTALL} commit`)
}

interface Move {
  readonly seq: number
  readonly what: 'waits' | 'runs' | 'revoked' | 'completed' | 'dead' | 'cancelled'
  readonly token: number | null
}

/** What the job was before a move. `token`: its newest lease. */
interface Was {
  readonly what: Move['what'] | null
  readonly token: number
}

export interface Judged {
  /** Each move that was not allowed, in words. */
  readonly broken: readonly string[]
  /** How many jobs were completed. */
  readonly completed: number
}

export function judgeMoves(database: Database): Judged {
  const moves = database.prepare('select seq, what, token from moved order by nth').all() as Move[]
  const jobs = new Map<number, Was>()
  const broken: string[] = []
  for (const { seq, what, token } of moves) {
    const was = jobs.get(seq) ?? { what: null, token: 0 }
    if (!isAllowed(was, what, token))
      broken.push(
        `job ${seq}: ${what} under ${token ?? 'no lease'}, after ${was.what ?? 'nothing'} under ${was.token}`,
      )
    jobs.set(seq, { what, token: what === 'runs' ? (token ?? NaN) : was.token })
  }
  return { broken, completed: moves.filter(({ what }) => what === 'completed').length }
}

function isAllowed(was: Was, what: Move['what'], token: number | null): boolean {
  const isFinal = was.what === 'completed' || was.what === 'dead' || was.what === 'cancelled'
  switch (what) {
    case 'waits':
      // Of the dead, a replay.
      return !isFinal || was.what === 'dead'
    case 'runs':
      return was.what === 'waits' && token !== null && token > was.token
    case 'revoked':
      return was.what === 'runs' && token === was.token
    case 'completed':
      return was.what === 'runs' && token === was.token
    case 'dead':
    case 'cancelled':
      // A rescue ends what it has just revoked; what waits is cancelled under no lease.
      if (token === null) return was.what === 'waits'
      return (was.what === 'runs' || was.what === 'revoked') && token === was.token
  }
}
