import { execFile } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
let dir = ''

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-bench-'))
})
afterAll(() => rm(dir, { recursive: true }))

function bench(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const placed = args.map(arg => arg.replace('DIR', dir))
  return new Promise(resolve => {
    execFile(process.execPath, ['bench/main.ts', ...placed], { cwd: ROOT, timeout: 15_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

describe('npm run bench', () => {
  it.each([
    ['an unknown scenario', ['decode', 'decoed'], /unknown scenario: decoed \(choose from sustained, /],
    ['an unknown option', ['--fast'], /Unknown option '--fast'/],
    ['to write the figures of a quick run', ['decode', '--quick', '--write'], /--write: figures of a quick run/],
    ['a file in a missing folder', ['--json', 'DIR/none/run.json'], /run.json: the file cannot be written \(ENOENT/],
  ])('rejects %s before it measures anything', async (_what, args, message) => {
    const { code, stdout, stderr } = await bench(...args)
    expect(stderr).toMatch(message)
    expect(stderr).toContain('npm run bench -- [NAME …]')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  it('lists every scenario with its question', async () => {
    const { code, stdout } = await bench('--list')
    expect(code).toBe(0)
    const listed = stdout.trim().split('\n')
    for (const line of listed) expect(line).toMatch(/^[a-z-]+ +\S.*\?$/)
    const names = listed.map(line => line.split(' ', 1)[0])
    const files = await readdir(fileURLToPath(new URL('scenarios', import.meta.url)), { recursive: true })
    for (const name of names) expect(files.map(file => basename(file))).toContain(`${name}.ts`)
  })
})
