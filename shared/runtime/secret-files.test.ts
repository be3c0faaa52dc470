import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { z } from 'zod'
import { parseConfig, redisSettings } from './config.ts'

const dir = mkdtempSync(join(tmpdir(), 'penstock-secrets-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const schema = z.object({ ...redisSettings, KEY_PEPPER: z.string().optional(), BIND_HOST: z.string().optional() })
const parse = (env: Record<string, string>) =>
  parseConfig(schema, { DIRECTORY_REDIS_URL: 'redis://directory:6379', ...env })
function fileOf(contents: string): string {
  const path = join(dir, `secret-${crypto.randomUUID()}`)
  writeFileSync(path, contents)
  return path
}

it('reads a secret from a file, without the line breaks at its end', () => {
  for (const ending of ['', '\n', '\r\n', '\n\n']) {
    expect(parse({ KEY_PEPPER_FILE: fileOf(` a pepper ${ending}`) }).KEY_PEPPER).toBe(' a pepper ')
  }
  expect(parse({ KEY_PEPPER_FILE: fileOf('line 1\nline 2\n') }).KEY_PEPPER).toBe('line 1\nline 2')
})

it('applies the rules of the setting to the contents, and does not repeat them', () => {
  const env = { REDIS_URL_FILE: fileOf('rediss://user:secret@queues:6379\n') }
  expect(parse(env).REDIS_URL).toBe('rediss://user:secret@queues:6379')
  const wrong = () => parse({ REDIS_URL_FILE: fileOf('http://user:secret@queues:6379') })
  expect(wrong).toThrow(/REDIS_URL must be redis/)
  expect(wrong).not.toThrow(/secret/)
})

it('refuses a setting that is given twice, and names both', () => {
  const both = () => parse({ KEY_PEPPER: 'a secret', KEY_PEPPER_FILE: fileOf('another secret') })
  expect(both).toThrow('KEY_PEPPER is set twice, here and by KEY_PEPPER_FILE: remove one')
  expect(both).not.toThrow(/secret/)
})

it('reports every file that cannot be used, together with the other faults', () => {
  const env = { KEY_PEPPER_FILE: join(dir, 'absent'), REDIS_URL_FILE: fileOf('\n'), DIRECTORY_REDIS_URL: 'http://x' }
  expect(() => parse(env)).toThrow(/DIRECTORY_REDIS_URL must be redis/)
  expect(() => parse(env)).toThrow(/KEY_PEPPER_FILE names .*absent, which cannot be read: ENOENT/)
  expect(() => parse(env)).toThrow(/REDIS_URL_FILE names .*, which is empty/)
})

it('reads no file of a setting that the process has not, and of no other setting', () => {
  const env = {
    CLICKHOUSE_PASSWORD_FILE: join(dir, 'absent'),
    BIND_HOST_FILE: join(dir, 'absent'),
    KEY_PEPPER_FILE: '',
  }
  expect(parse(env)).toEqual({ REDIS_URL: 'redis://127.0.0.1:4379', DIRECTORY_REDIS_URL: 'redis://directory:6379' })
})
