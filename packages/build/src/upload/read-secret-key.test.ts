import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { generateKey } from '../../../../shared/ids/credentials.ts'
import { readSecretKey } from './read-secret-key.ts'

const SECRET = generateKey('secret')
const OTHER = generateKey('secret')
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'penstock-key-'))
})
afterAll(() => rm(directory, { recursive: true }))

async function file(text: string): Promise<string> {
  const path = join(directory, 'key')
  await writeFile(path, text)
  return path
}

it('reads the key from the file, else from the environment, else from the local installation', async () => {
  const sources = { file: await file(`${SECRET}\n`), environment: OTHER, local: OTHER }
  expect(await readSecretKey(sources)).toBe(SECRET)
  expect(await readSecretKey({ environment: ` ${SECRET} `, local: OTHER })).toBe(SECRET)
  expect(await readSecretKey({ local: SECRET })).toBe(SECRET)
})

it.each([
  ['api_key_wrong_prefix', generateKey('public')],
  ['api_key_wrong_prefix', generateKey('workspace')],
  ['api_key_wrong_prefix', `Bearer ${SECRET}`],
  ['api_key_unreadable', SECRET.slice(0, -1)],
  ['api_key_unreadable', SECRET.slice(0, -1) + (SECRET.endsWith('A') ? 'B' : 'A')],
  ['api_key_unreadable', `${SECRET}${'x'.repeat(100_000)}`],
])('fails with %s and shows nothing of the text', async (result, text) => {
  for (const sources of [{ file: await file(text) }, { environment: text }]) {
    const error = await readSecretKey(sources).catch(error => error)
    expect(error).toMatchObject({ result })
    expect(error.message).not.toContain(text.slice(3, 20))
  }
})

it('fails with api_key_unreadable when there is no key, no file, or an empty file', async () => {
  for (const sources of [{}, { file: join(directory, 'gone') }, { file: directory }, { file: await file('\n') }]) {
    await expect(readSecretKey(sources)).rejects.toMatchObject({ result: 'api_key_unreadable' })
  }
})
