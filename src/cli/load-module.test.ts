import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ModuleMissing } from './exit.ts'
import { loadModule } from './load-module.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-load-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function load(name: string, text: string): Promise<object> {
  await writeFile(join(folder, name), text)
  return loadModule(name, folder)
}

describe('a module', () => {
  test.for([
    ['esm.mjs', 'export const answer = 42'],
    ['common.cjs', 'exports.answer = 42'],
    ['typed.ts', 'interface A { b: number }\nexport const answer: A["b"] = 42'],
    ['typed.mts', 'enum Answer { Right = 42 }\nexport const answer = Answer.Right as number'],
    ['typed.cts', 'const answer: number = 42\nexport { answer }'],
    ['later.ts', 'export const answer: number = await Promise.resolve(42)'],
  ] as const)('is loaded from %s', async ([name, text]) => {
    expect(await load(name, text)).toMatchObject({ answer: 42 })
  })

  test('in TypeScript may import TypeScript', async () => {
    await writeFile(join(folder, 'answer.ts'), 'export const answer: number = 42')
    expect(await load('main.ts', "export { answer } from './answer.ts'")).toMatchObject({ answer: 42 })
  })
})

describe('a module that cannot be loaded', () => {
  test('is not there, and a near miss is suggested', async () => {
    await expect(loadModule('gone.ts', folder)).rejects.toBeInstanceOf(ModuleMissing)
    await writeFile(join(folder, 'near.ts'), '')
    await expect(loadModule('near', folder)).rejects.toMatchObject({ hint: 'Did you mean near.ts?' })
  })

  test('is a folder', async () => {
    await expect(loadModule('.', folder)).rejects.toMatchObject({
      code: 'HF_BAD_MODULE',
      message: '. is not a file.',
    })
  })

  test.for([
    ['throws.mjs', 'throw new Error("boom")', 'boom'],
    ['throws.ts', 'const text: string = "boom"; throw new Error(text)', 'boom'],
    ['rejects.mjs', 'await Promise.reject(new Error("late boom"))', 'late boom'],
    ['imports.mjs', 'import "./nowhere.mjs"', 'nowhere.mjs'],
    ['broken.ts', 'export const x: = 1', 'Unexpected token'],
  ] as const)('says why: %s', async ([name, text, cause]) => {
    await expect(load(name, text)).rejects.toMatchObject({
      code: 'HF_BAD_MODULE',
      message: `Could not load ${name}.`,
      cause: { message: expect.stringContaining(cause) },
    })
    await expect(load(name, text)).rejects.not.toBeInstanceOf(ModuleMissing)
  })
})
