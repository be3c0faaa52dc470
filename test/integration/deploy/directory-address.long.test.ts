import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const { publicKey } = generateKeyPairSync('ed25519')
const ENV = {
  PATH: process.env.PATH,
  REDIS_URL: 'redis://127.0.0.1:1',
  KEY_PEPPER: 'p'.repeat(32),
  AUTH_ISSUER: 'https://login.example',
  AUTH_AUDIENCE: 'penstock',
  AUTH_PUBLIC_KEY: String(publicKey.export({ type: 'spki', format: 'pem' })),
}

/** Runs a process in a directory without an installation until it ends. */
function run(script: string, words: readonly string[]): Promise<{ code: unknown; text: string }> {
  const path = fileURLToPath(new URL(`../../../${script}`, import.meta.url))
  return new Promise(resolve => {
    const child = execFile(
      process.execPath,
      [path, ...words],
      { cwd: tmpdir(), env: ENV, timeout: 60_000 },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, text: stdout + stderr }),
    )
  })
}

it.each([
  ['the edge', 'ingest/main.ts', []],
  ['the workers', 'workers/main.ts', []],
  ['the API', 'api/main.ts', []],
  ['a command', 'cli/main.ts', ['workspace', 'list']],
])('ends %s with the name of the setting if the address of the directory is not set', async (_name, script, words) => {
  const { code, text } = await run(script, words)
  expect(code).toBe(2)
  expect(text).toContain('DIRECTORY_REDIS_URL is required: set the Redis of the directory and the releases')
  // One line, which names no other setting as wrong.
  expect(text.trim().split('\n')).toHaveLength(1)
  expect(text).not.toContain('; ')
})
