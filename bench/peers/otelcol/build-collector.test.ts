import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { buildCollector, findCollector } from './build-collector.ts'

let dir = ''
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-bench-'))
  vi.stubEnv('XDG_CACHE_HOME', join(dir, 'cache'))
  vi.stubEnv('OTELCOL_BIN', '')
  vi.stubEnv('PATH', join(dir, 'bin'))
  await mkdir(join(dir, 'bin'))
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(dir, { recursive: true })
})

/** Writes a program that takes the place of the Go toolchain. */
async function installGo(script: string): Promise<void> {
  const path = join(dir, 'bin', 'go')
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
}

it('returns a reason where Go is not installed', async () => {
  expect(await buildCollector(() => {})).toEqual({
    ok: false,
    reason: expect.stringMatching(/^there is no Go toolchain in PATH; node bench.* builds it where one is$/),
  })
})

it('builds once, and finds the program later', async () => {
  // "go install" installs a builder, which writes the program where the manifest states.
  await installGo(`
    printf '#!/bin/sh\\n/bin/mkdir dist\\necho x > dist/otelcol\\n' > "$GOBIN/builder"
    /bin/chmod +x "$GOBIN/builder"`)
  const built = await buildCollector(() => {})
  expect(built).toEqual({ ok: true, path: expect.stringMatching(/\/dist\/otelcol$/) })
  await rm(join(dir, 'bin', 'go'))
  expect(await buildCollector(() => {})).toEqual(built)
  expect(await findCollector()).toBe(built.ok && built.path)
})

it('returns the last line of a build that fails, and leaves nothing that the next run would take for a program', async () => {
  await installGo('echo downloading >&2; echo "no such module" >&2; exit 1')
  expect(await buildCollector(() => {})).toEqual({ ok: false, reason: 'its build failed: no such module' })
  expect(await readdir(join(dir, 'cache', 'penstock'))).toEqual([])
})

it('uses the program that OTELCOL_BIN names', async () => {
  vi.stubEnv('OTELCOL_BIN', '/opt/otelcol')
  expect(await buildCollector(() => {})).toEqual({ ok: true, path: '/opt/otelcol' })
})
