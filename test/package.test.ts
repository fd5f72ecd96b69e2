import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageJson, root } from './support/tree.ts'

// What a user gets: the tarball of the last build (`npm test` makes one), installed into an empty project.
describe('the packed package, installed', () => {
  const run = promisify(execFile)
  let project: string

  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), 'holdfast-package-'))
    const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', project]
    const { stdout } = await run('npm', pack, { cwd: root })
    const tarball = JSON.parse(stdout)[0].filename
    await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }')
    const install = ['install', `./${tarball}`, '--no-audit', '--no-fund', '--prefer-offline']
    await run('npm', install, { cwd: project })
  }, 60_000)

  afterAll(() => rm(project, { recursive: true, force: true }))

  /** Compiles the TypeScript in a folder of the project. Returns what the compiler prints. */
  async function compiled(folder: string, options: object): Promise<string> {
    const compilerOptions = {
      target: 'es2023',
      lib: ['es2023', 'esnext.disposable'],
      module: 'nodenext',
      strict: true,
      skipLibCheck: false,
      typeRoots: [`${root}node_modules/@types`],
      types: ['node'],
      ...options,
    }
    await writeFile(join(project, folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    const tsc = `${root}node_modules/typescript/bin/tsc`
    const { stdout } = await run('node', [tsc, '-p', join(project, folder)]).catch(
      (failed: { stdout: string }) => failed,
    )
    return stdout
  }

  const subpaths = Object.entries(packageJson.exports).flatMap(([subpath, target]) =>
    typeof target === 'string' ? [] : [`holdfast${subpath.slice(1)}`],
  )

  test.for(subpaths)('exports something from %s', async (specifier) => {
    const script = `console.log(Object.keys(await import('${specifier}')).join())`
    const { stdout } = await run('node', ['--input-type=module', '--eval', script], { cwd: project })
    expect(stdout.trim()).not.toBe('')
  })

  /** The files of the package that a program loads which imports these. */
  async function loadedBy(...specifiers: string[]): Promise<string[]> {
    const hooks = `import { writeSync } from 'node:fs'
      export const load = (url, context, next) => (writeSync(1, url + '\\n'), next(url, context))`
    const script = `import { register } from 'node:module'
      register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}))
      for (const specifier of ${JSON.stringify(specifiers)}) await import(specifier)`
    const { stdout } = await run('node', ['--input-type=module', '--eval', script], { cwd: project })
    return [...stdout.matchAll(/\/holdfast\/dist\/(\S+)/g)].map(([, path = '']) => path).toSorted()
  }

  test.for([
    ['postgres', []],
    ['redis', []],
    ['sqlite', ['stores/sqlite/shared.js']],
  ] as const)('loads few files, and none of another store, on %s', async ([store, more]) => {
    const expected = ['core.js', 'index.js', ...more, `stores/${store}/index.js`, 'stores/shared.js']
    expect(await loadedBy('holdfast', `holdfast/${store}`)).toEqual(expected.toSorted())
  })

  test('has each class once, whichever entry it comes from', async () => {
    const script = `import { HoldfastError } from 'holdfast'
      import { HoldfastError as same } from 'holdfast/store'
      import { redisStore } from 'holdfast/redis'
      let thrown
      try { redisStore({ url: 7 }) } catch (error) { thrown = error }
      console.log(HoldfastError === same, thrown instanceof HoldfastError, thrown.stack)`
    const { stdout } = await run('node', ['--input-type=module', '--eval', script], { cwd: project })
    expect(stdout).toMatch(/^true true HoldfastError/)
    // Functions go by the names that they have in the sources.
    expect(stdout).toMatch(/ at redisStore \(/)
  })

  // tsc leaves `./file.ts` in the declarations that it writes; a user's compiler has to find `file.d.ts` by it.
  test('type-checks in a strict project that checks its declarations, too', async () => {
    const lines = subpaths.map((specifier, index) => `export * as part${index} from '${specifier}'`)
    await mkdir(join(project, 'consumer'))
    await writeFile(join(project, 'consumer/consumer.ts'), lines.join('\n'))
    expect(await compiled('consumer', { noEmit: true })).toBe('')
  })

  test("takes somebody else's store, and tests it with any test runner", async () => {
    const from = `${root}test/third-party-store`
    await mkdir(join(project, 'store'))
    for (const file of await readdir(from)) {
      if (file === 'recipe.test.ts') continue
      const text = await readFile(join(from, file), 'utf8')
      await writeFile(join(project, 'store', file), text.replace("'vitest'", "'node:test'"))
    }
    expect(await compiled('store', { rewriteRelativeImportExtensions: true, outDir: './out' })).toBe('')
    const { stdout } = await run('node', ['--test', 'store/out/conformance.test.js'], {
      cwd: project,
      maxBuffer: 16_000_000,
    }).catch((failed: { stdout: string }) => failed)
    expect(stdout).toMatch(/^\S+ fail 0$/m)
    expect(Number(/^\S+ pass (\d+)$/m.exec(stdout)?.[1])).toBeGreaterThan(300)
  }, 60_000)

  test('lets its package.json be read', async () => {
    const script = `console.log(require('holdfast/package.json').version)`
    const { stdout } = await run('node', ['--input-type=commonjs', '--eval', script], { cwd: project })
    expect(stdout.trim()).toBe(packageJson.version)
  })

  describe('on the embedded store', () => {
    const job = `
      import { holdfast } from 'holdfast'
      const hf = holdfast()
      const greet = hf.job({ name: 'greet', run: () => 'hello' })
      await hf.work()
      console.log(await (await greet.enqueue()).result())
      await hf.close()`
    const { HOLDFAST_STORE: _, ...env } = process.env
    const runs = () =>
      run('node', ['--input-type=module', '--eval', job], { cwd: project, env }).catch(
        (failed: { stdout: string; stderr: string }) => failed,
      )

    test.skipIf(isBuiltin('node:sqlite'))('says what to install if there is no SQLite library', async () => {
      expect((await runs()).stderr).toContain('npm install @photostructure/sqlite@1')
    })

    test('runs a job and prints nothing but its result', async () => {
      const driver = `@photostructure/sqlite@${packageJson.devDependencies['@photostructure/sqlite']}`
      await run('npm', ['install', driver, '--no-audit', '--no-fund', '--prefer-offline'], { cwd: project })
      expect(await runs()).toMatchObject({ stdout: 'hello\n', stderr: '' })
    }, 60_000)
  })

  test('has a command that tells its version', async () => {
    const { stdout } = await run('npx', ['--no-install', 'holdfast', '--version'], { cwd: project })
    expect(stdout.trim()).toContain(packageJson.version)
  })
})
