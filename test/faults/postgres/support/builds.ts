/**
 * Packed builds of this package, each installed in its own project, as users install them: today's build, and two made from
 * it with invented later versions of the schema. The inventions are edits of the files of the build. An edit that no longer
 * applies is an error.
 */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { SCHEMA_VERSION } from '../../../../src/stores/postgres/schema.ts'
import { root } from '../../../support/tree.ts'

export interface Build {
  /** Of its schema. */
  readonly version: number
  /** A project in which it is installed. */
  readonly folder: string
}

export interface Builds {
  readonly today: Build
  /** The next version: other tables, functions and views, within the rule for released versions. */
  readonly next: Build
  /** The version after that, which no longer supports today's. */
  readonly later: Build
  readonly remove: () => void
}

/** Packs the last build: `npm run test:faults` makes one. */
export async function packBuilds(): Promise<Builds> {
  const run = promisify(execFile)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-builds-'))
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const { stdout } = await run('npm', pack, { cwd: root })
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }]
  await run('tar', ['-xzf', filename], { cwd: folder })
  // Beside all projects, where Node looks for what the package depends on.
  symlinkSync(`${root}node_modules`, join(folder, 'node_modules'), 'dir')
  const install = (name: string, version: number): Build => {
    const project = join(folder, name)
    mkdirSync(join(project, 'node_modules'), { recursive: true })
    cpSync(join(folder, 'package'), join(project, 'node_modules/holdfast'), { recursive: true })
    writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }')
    cpSync(new URL('upgrade-program.ts', import.meta.url), join(project, 'program.ts'))
    return { version, folder: project }
  }
  const builds = {
    today: install('today', SCHEMA_VERSION),
    next: install('next', SCHEMA_VERSION + 1),
    later: install('later', SCHEMA_VERSION + 2),
  }
  inventNext(builds.next)
  inventNext(builds.later, SCHEMA_VERSION + 1)
  setVersion(builds.later)
  return { ...builds, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

/**
 * Everything that a version may change in the schema of its predecessor: a new column in the row type that functions pass
 * around, another in a partitioned table, and an index; functions with a new body, new parameters and new results; a changed
 * type and a changed view; and a new function, which the program calls if the schema has it.
 */
function inventNext(build: Build, version = build.version): void {
  const edit = editor(build)
  setVersion({ ...build, version })
  const number = String(version).padStart(4, '0')
  edit.add(
    `schema/tables/${number}_claimed_by.sql`,
    `alter table holdfast.lease add column claimed_by text;
alter table holdfast.history add column claimed_by text;
create index on holdfast.lease (queue);`,
  )
  edit.add('schema/functions/cycle_named.sql', CYCLE_NAMED)

  // Another body: the claim writes the new column.
  edit.text('schema/functions/grant_lease.sql', 'done, strays)\n', 'done, strays, claimed_by)\n')
  edit.text(
    'schema/functions/grant_lease.sql',
    "'0', v_size)::varbit, v_strays)",
    "'0', v_size)::varbit, v_strays, nullif(current_setting('rehearsal.claimed_by', true), ''))",
  )
  // Another parameter of a function that only functions call.
  edit.text(
    'schema/functions/settle.sql',
    'p_dropped[v_start + 1 : v_start + v_size]);',
    'p_dropped[v_start + 1 : v_start + v_size], v_lease.claimed_by);',
  )
  edit.text(
    'schema/functions/settle.sql',
    'p_results text[], p_dropped boolean[]\n)',
    'p_results text[], p_dropped boolean[], p_claimed_by text\n)',
  )
  edit.text(
    'schema/functions/settle.sql',
    'run_ms, results, dropped)\n',
    'run_ms, results, dropped, claimed_by)\n',
  )
  edit.text(
    'schema/functions/settle.sql',
    'when true = any (p_dropped) then p_dropped end);',
    'when true = any (p_dropped) then p_dropped end, p_claimed_by);',
  )
  // Another result, and another view: the program before reads the columns that it knows.
  edit.text(
    'schema/functions/heartbeat.sql',
    'cancels json, paused json)',
    'cancels json, paused json, load integer)',
  )
  edit.text(
    'schema/functions/heartbeat.sql',
    'null::json, null::json, null::json;',
    'null::json, null::json, null::json, 0;',
  )
  edit.text('schema/functions/heartbeat.sql', 'where queue.paused);', 'where queue.paused), 0;')
  edit.text('schema/views/queue_status.sql', ') as oldest_ready_at\n', ') as oldest_ready_at, 0 as load\n')
  // Another type, on which functions depend.
  edit.text(
    'schema/functions/types.sql',
    'facts text, payload text',
    'facts text, payload text, load integer',
  )

  edit.text('index.js', '\twasFinished: ', `\tcycleNamed: \`${CALL_NAMED}\`,\n\twasFinished: `)
  edit.pattern(
    'index.js',
    /apply: parts\.migrate,\s+clock,\s+random\s+\}\);/,
    `apply: parts.migrate, clock, random });
			const look = "select to_regproc('holdfast.cycle_named') is not null as there";
			const [found] = await executor.query({ name: 'look_for_cycle_named', text: look }, []);
			if (found.there) statements.cycle = { ...statements.cycle, ...statements.cycleNamed };`,
  )
}

function setVersion(build: Build): void {
  const edit = editor(build)
  edit.pattern('index.js', /const SCHEMA_VERSION = \d+;/g, `const SCHEMA_VERSION = ${build.version};`)
  edit.pattern('index.js', /const OLDEST_SCHEMA = \d+;/g, `const OLDEST_SCHEMA = ${build.version - 1};`)
  edit.pattern('index.js', /const OLDEST_PROGRAM = \d+;/g, `const OLDEST_PROGRAM = ${build.version - 1};`)
}

const PARAMETERS = `p_worker uuid, p_leases bigint[], p_masks text[], p_kinds text[], p_delays bigint[], p_run_ms integer[],
  p_details text[], p_dropped boolean[], p_records text[], p_forget boolean, p_queue text, p_limit integer,
  p_lanes smallint[], p_from bigint[], p_to bigint[]`

const CYCLE_NAMED = `-- As holdfast.cycle, and its leases say which program claimed them.
create function holdfast.cycle_named(
  ${PARAMETERS}
) returns setof text language plpgsql as $$
begin
  perform set_config('rehearsal.claimed_by', 'next', true);
  return query select holdfast.cycle(${PARAMETERS.replaceAll(/(p_\w+) [\w[\]]+/g, '$1')});
end $$;
`

const CALL_NAMED = `select holdfast.cycle_named($1::uuid, $2::text::bigint[], $3::text::text[], $4::text::text[],
  $5::text::bigint[], $6::text::integer[], $7::text::text[], $8::text::boolean[], $9::text::text[], $10::boolean,
  $11::text, $12::integer, $13::text::smallint[], $14::text::bigint[], $15::text::bigint[]) as answer`

interface Editor {
  readonly add: (file: string, text: string) => void
  readonly text: (file: string, before: string, after: string) => void
  readonly pattern: (file: string, before: RegExp, after: string) => void
}

function editor({ folder }: Build): Editor {
  const path = (file: string): string => join(folder, 'node_modules/holdfast/dist/stores/postgres', file)
  const replace = (file: string, before: string | RegExp, after: string): void => {
    const text = readFileSync(path(file), 'utf8')
    const parts = text.split(before)
    if (parts.length !== 2)
      throw new Error(`${String(before)} is ${parts.length - 1} times in ${file}, not once.`)
    writeFileSync(path(file), parts.join(after))
  }
  return {
    add: (file, text) => writeFileSync(path(file), text, { flag: 'wx' }),
    text: replace,
    pattern: replace,
  }
}
