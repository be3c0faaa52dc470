import { execFile } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build as esbuild } from 'esbuild'
import type { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ManifestFile, manifestSchema } from '../../../schemas/records/manifest.ts'
import { MIB } from '../../../schemas/units.ts'
import { createDirectory } from '../../../shared/directory/directory.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { generateKey } from '../../../shared/ids/credentials.ts'
import { sourceMapKey } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { connectConsumer } from '../../../shared/queue/redis.ts'
import { issueKey, startEdge, type TestEdge } from '../../support/services/edge.ts'
import { startPools, type TestPools } from '../../support/services/pools.ts'
import { sharedServices } from '../../support/services/shared-services.ts'
import { createTestDatabase, type TestDatabase } from '../../support/services/test-database.ts'
import { until } from '../../support/until.ts'

const services = sharedServices()
const redisUrl = `${services.redisUrl}/6`
const MAIN = fileURLToPath(new URL('../../../cli/main.ts', import.meta.url))
const SOURCE = 'const shout = (name: string): string => name.toUpperCase()\nconsole.log(shout("it runs"))\n'

describe('penstock sourcemaps upload', () => {
  const workspaceId = `ws_${randomBytes(5).toString('hex')}`
  let redis: Redis
  let objects: ObjectStore
  let database: TestDatabase
  let edge: TestEdge
  let pools: TestPools
  let key: string
  let root: string
  let builds = 0
  let dist: string

  beforeAll(async () => {
    redis = connectConsumer(redisUrl, pino({ level: 'silent' }))
    await redis.flushdb()
    objects = createObjectStore({ ...services.s3, requestTimeoutMs: 10_000 })
    key = await issue({})
    database = await createTestDatabase(services.clickhouseUrl, `cli_sourcemaps_${process.pid}`)
    edge = await startEdge(redisUrl, storeSettings())
    pools = startPools(
      ['source-maps', 'completions', 'build-reports', 'symbolication'],
      { ...services, redisUrl },
      database.name,
    )
    root = await mkdtemp(join(tmpdir(), 'penstock-cli-'))
    await writeFile(join(root, 'source.ts'), SOURCE)
  })
  afterAll(async () => {
    await pools?.stop()
    await edge?.stop()
    await database?.drop()
    objects?.close()
    redis?.disconnect()
    if (root) await rm(root, { recursive: true })
  })
  beforeEach(async () => {
    dist = join(root, `build-${++builds}`)
    await mkdir(dist)
  })

  it('uploads the output of a bundler with debug ids, and it still runs; a second upload sends nothing', async () => {
    await bundle('linked/app.js', 'linked')
    await bundle('own.mjs', 'inline')
    await bundle('hidden.cjs', 'external')
    const first = await upload('1.0.0')
    expect(first).toMatchObject({ code: 0, outcome: { result: 'ok', sourceFileCount: 3, fileCount: 3 } })
    expect(outcomes(first)).toEqual(['signed', 'signed', 'signed'])

    const manifest = await manifestOf(first.outcome.releaseSlug)
    expect(manifest.sourceFileCount).toBe(3)
    expect(manifest.files.map(({ path, chunkUrl, verified }) => [path, chunkUrl, verified])).toEqual([
      ['hidden.cjs.map', '~/hidden.cjs', true],
      ['linked/app.js.map', '~/linked/app.js', true],
      ['own.mjs.map', '~/own.mjs', true],
    ])
    for (const file of manifest.files) {
      const map = JSON.parse((await storedMap(file)).toString())
      expect(map).toMatchObject({ debugId: file.debugId, sourcesContent: [SOURCE] })
      const script = file.path.replace(/\.map$/, '')
      expect(await readFile(join(dist, script), 'utf8')).toContain(`\n//# debugId=${file.debugId}\n`)
      expect((await runNode([join(dist, script)])).stdout).toBe('IT RUNS\n')
    }
    expect(new Set(manifest.files.map(({ debugId }) => debugId)).size).toBe(3)
    expect(await readFile(join(dist, 'linked/app.js.map'))).toEqual(await storedMap(manifest.files[1]))

    const before = await contentsOf(dist)
    const second = await upload('1.0.0')
    expect(outcomes(second)).toEqual(['known', 'known', 'known'])
    expect(second.outcome.releaseSlug).toBe(first.outcome.releaseSlug)
    expect(await contentsOf(dist)).toEqual(before)
    expect(await manifestOf(first.outcome.releaseSlug)).toMatchObject({ files: manifest.files })
    expect(await reportsOf(first.outcome.releaseSlug, 2)).toMatchObject([
      { result: 'ok', file_count: 3, total_bytes: first.outcome.totalBytes },
      { result: 'ok', file_count: 3 },
    ])
  })

  it('prints its result on stdout and its progress on stderr', async () => {
    await bundle('app.js', 'linked')
    const { code, stdout, stderr } = await runCli([
      '--version',
      'told',
      '--commit',
      'abc',
      '--repository',
      'https://github.com/acme/shop',
      '--url-prefix',
      'https://cdn.example/x',
    ])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^release "told" \(rel_\w+\): 1 source map, \d+ bytes\n {2}1 uploaded, 0 already stored/)
    expect(stderr).toMatch(/^uploading source maps: 1\nuploading source maps: 1 of 1, /)
    const [, slug = ''] = /\((rel_\w+)\)/.exec(stdout) ?? []
    expect((await manifestOf(slug)).files).toMatchObject([{ chunkUrl: 'https://cdn.example/x/app.js' }])
    expect(await createReleaseStore(redis).release(workspaceId, slug)).toMatchObject({
      ...{ name: 'told', commit: 'abc', metadata: { repository: 'https://github.com/acme/shop' } },
    })
  })

  it('uploads in parts with --parts, and when the object store cannot be reached', async () => {
    const away = await startEdge(redisUrl, { ...storeSettings(), S3_PUBLIC_ENDPOINT: 'http://127.0.0.1:2' })
    const large = () => largeMap(2 * MIB)
    try {
      await put('a.js', 'f()\n//# sourceMappingURL=a.js.map\n')
      await put('a.js.map', large())
      const forced = await upload('parts-1', ['--parts'])
      expect(outcomes(forced)).toEqual(['parts'])
      await put('a.js.map', large())
      const unreachable = await upload('parts-2', [], { PENSTOCK_URL: away.baseUrl })
      expect(outcomes(unreachable)).toEqual(['parts'])
      expect(unreachable.stderr).toContain('127.0.0.1:2 cannot be reached from here (ECONNREFUSED)')
      for (const { outcome } of [forced, unreachable]) {
        const [file] = (await manifestOf(outcome.releaseSlug)).files
        expect(digest(await storedMap(file))).toBe(outcome.files[0]?.sha256)
      }

      await put('a.js.map', large())
      const conflict = await upload('parts-2', ['--parts'])
      expect(conflict).toMatchObject({ code: 1, outcome: { result: 'pipeline_failed' } })
      expect(conflict.outcome.message).toContain('RELEASE_UPLOAD_CONFLICT')
      expect(await reportsOf(conflict.outcome.releaseSlug, 2)).toMatchObject([
        { result: 'ok' },
        { result: 'pipeline_failed' },
      ])
    } finally {
      await away.stop()
    }
  })

  it.each([
    ['api_key_wrong_prefix', 4, async () => generateKey('public')],
    ['api_key_unreadable', 5, async () => `${generateKey('secret')}x`],
    ['api_key_unreadable', 5, async () => ''],
    ['api_key_rejected', 6, async () => generateKey('secret')],
    ['api_key_scope_mismatch', 7, async () => issue({ scopes: [] })],
  ])('ends with %s (%i), prints nothing of the key and leaves the build unchanged', async (result, code, makeKey) => {
    await bundle('app.js', 'linked')
    const before = await contentsOf(dist)
    const text = await makeKey()
    const ended = await upload('1', [], { PENSTOCK_SECRET_KEY: text })
    expect(ended).toMatchObject({ code, outcome: { result } })
    expect(ended.stderr).toContain(`${result}: `)
    if (text !== '') expect(ended.stdout + ended.stderr).not.toContain(text.slice(3, 12))
    expect(ended.outcome).not.toHaveProperty('releaseSlug')
    expect(await contentsOf(dist)).toEqual(before)
  })

  it('reads the key from a file', async () => {
    await bundle('app.js', 'linked')
    await writeFile(join(root, 'key'), `${key}\n`)
    const read = await upload('1', ['--key-file', join(root, 'key')], { PENSTOCK_SECRET_KEY: generateKey('secret') })
    expect(read.code).toBe(0)
    expect(await upload('1', ['--key-file', join(root, 'none')])).toMatchObject({ code: 5 })
  })

  it('uses address and key of the installation in its directory, and the key only for that address', async () => {
    await bundle('app.js', 'linked')
    await mkdir(join(root, '.local'))
    await writeFile(join(root, '.local/credentials.json'), JSON.stringify({ baseUrl: edge.baseUrl, secretKey: key }))
    const none = { PENSTOCK_URL: '', PENSTOCK_SECRET_KEY: '' }
    expect(await upload('local', [], none, root)).toMatchObject({ code: 0 })
    const elsewhere = await upload('local', ['--url', 'http://localhost:2'], none, root)
    expect(elsewhere).toMatchObject({ code: 5, outcome: { result: 'api_key_unreadable' } })
  })

  it('ends with no_source_maps (8) and reports it', async () => {
    await put('a.js', 'f()')
    await put('a.css.map', '{}')
    const ended = await upload('none')
    expect(ended).toMatchObject({ code: 8, outcome: { result: 'no_source_maps', sourceFileCount: 1, fileCount: 0 } })
    expect(await reportsOf(ended.outcome.releaseSlug, 1)).toMatchObject([{ result: 'no_source_maps', file_count: 0 }])
  })

  it('ends with client_maps_unmapped (9) when a bundle names a missing map, unless that is allowed', async () => {
    await bundle('app.js', 'linked')
    await put('vendor.js', 'f()\n//# sourceMappingURL=gone.js.map')
    await put('broken.js', 'f()\n//# sourceMappingURL=broken.js.map')
    await put('broken.js.map', '<html>')
    const before = await contentsOf(dist)
    const missing = await upload('unmapped')
    expect(missing).toMatchObject({ code: 9, outcome: { result: 'client_maps_unmapped', fileCount: 0 } })
    expect(missing.outcome.message).toContain('vendor.js names "gone.js.map", which does not exist')
    expect(await contentsOf(dist)).toEqual(before)
    expect(await reportsOf(missing.outcome.releaseSlug, 1)).toMatchObject([{ result: 'client_maps_unmapped' }])

    await rm(join(dist, 'vendor.js'))
    const broken = await upload('unmapped')
    expect(broken).toMatchObject({ code: 9 })
    expect(broken.outcome.message).toContain('broken.js.map cannot be used: it is not a JSON object')
    const allowed = await upload('unmapped', ['--allow-unmapped'])
    expect(allowed).toMatchObject({
      code: 0,
      outcome: { fileCount: 1, warnings: [expect.stringContaining('broken.js.map')] },
    })

    dist = join(root, 'orphans')
    await mkdir(dist)
    await put('x.map', '{"version":3,"mappings":""}')
    expect(await upload('unmapped')).toMatchObject({
      code: 9,
      outcome: { message: expect.stringContaining('x.map belongs to no bundle') },
    })
  })

  it('ends with pipeline_failed (1) when the service cannot be reached in time', async () => {
    await bundle('app.js', 'linked')
    const away = await upload('1', ['--url', 'http://127.0.0.1:2', '--retry-timeout', '0.5'])
    expect(away).toMatchObject({ code: 1, outcome: { result: 'pipeline_failed' } })
    expect(away.outcome.message).toMatch(/^registering the release: ECONNREFUSED \(\d attempts\)$/)
    const other = await upload('1', ['--url', services.s3.endpoint, '--retry-timeout', '0.5'])
    expect(other).toMatchObject({ code: 1, outcome: { result: 'pipeline_failed' } })
  })

  it('prints in a dry run what it would do, without key and network, and writes nothing', async () => {
    await bundle('app.js', 'linked')
    const before = await contentsOf(dist)
    const nothing = { PENSTOCK_URL: '', PENSTOCK_SECRET_KEY: '' }
    const { code, stdout } = await runCli(['--version', '1', '--dry-run'], nothing)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^would upload 1 source map, \d+ bytes, as release "1":\n {2}app.js.map for ~\/app.js\n/)
    expect(stdout).toContain('would add a debug id to\n  app.js.map\n  app.js\n')
    expect(await contentsOf(dist)).toEqual(before)
    const real = await upload('dry')
    expect(stdout).toContain(`${real.outcome.totalBytes} bytes`)
  })

  it('leaves the build unchanged with --no-inject', async () => {
    await bundle('app.js', 'linked')
    const before = await contentsOf(dist)
    const { outcome } = await upload('bare', ['--no-inject'])
    expect(await contentsOf(dist)).toEqual(before)
    expect((await manifestOf(outcome.releaseSlug)).files).toMatchObject([{ debugId: '', chunkUrl: '~/app.js' }])
  })

  function issue(change: object): Promise<string> {
    return issueKey(createDirectory(redis), { kind: 'secret', scopes: ['release:write'], workspaceId, ...change })
  }

  function storeSettings(): Record<string, string> {
    const { endpoint, bucket, accessKeyId, secretAccessKey } = services.s3
    return {
      S3_ENDPOINT: endpoint,
      S3_BUCKET: bucket,
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
    }
  }

  async function put(path: string, text: string): Promise<void> {
    await mkdir(dirname(join(dist, path)), { recursive: true })
    await writeFile(join(dist, path), text)
  }

  async function bundle(path: string, sourcemap: 'linked' | 'inline' | 'external'): Promise<void> {
    await esbuild({
      entryPoints: [join(root, 'source.ts')],
      outfile: join(dist, path),
      sourcemap,
      bundle: true,
      minify: true,
      // Maps of the same source in different folders differ in their paths.
      format: path.endsWith('.cjs') ? 'cjs' : 'esm',
      footer: { js: `/* ${path} */` },
      ...(sourcemap === 'inline' && { banner: { js: '/* own */\n' } }),
      ...(sourcemap === 'external' && { banner: { js: '/* hidden */\n\n' } }),
    })
  }

  async function manifestOf(slug: string | undefined) {
    const pointer = await createReleaseStore(redis).manifest(workspaceId, slug ?? '')
    const object = pointer && (await objects.get(pointer.objectKey, MIB))
    if (!object) throw new Error(`${slug} has no manifest`)
    return manifestSchema.parse(JSON.parse(object.body.toString()))
  }

  async function storedMap(file: ManifestFile | undefined): Promise<Buffer> {
    const object = file && (await objects.get(sourceMapKey(workspaceId, file.sha256), 4 * MIB))
    if (!object) throw new Error(`${file?.path} is not stored`)
    return object.body
  }

  function reportsOf(slug: string | undefined, count: number) {
    return until(`${count} reports are stored`, async () => {
      const rows = await database.rows<Record<string, unknown>>(
        `SELECT result, toUInt32(file_count) AS file_count, toUInt32(total_bytes) AS total_bytes FROM build_reports
         WHERE workspace_id = '${workspaceId}' AND release_slug = '${slug}' ORDER BY received_at`,
      )
      return rows.length >= count ? rows : undefined
    })
  }

  interface Ended {
    code: number
    stdout: string
    stderr: string
  }
  interface Outcome {
    result: string
    message?: string
    releaseSlug?: string
    totalBytes: number
    files: { outcome: string; sha256: string }[]
    warnings: string[]
  }
  const outcomes = ({ outcome }: { outcome: Outcome }) => outcome.files.map(file => file.outcome)

  async function upload(version: string, args: string[] = [], settings: Record<string, string> = {}, cwd?: string) {
    const ended = await runCli(['--version', version, '--json', ...args], settings, cwd)
    return { ...ended, outcome: JSON.parse(ended.stdout) as Outcome }
  }

  function runCli(args: readonly string[], settings: Record<string, string> = {}, cwd = tmpdir()): Promise<Ended> {
    const env = { PENSTOCK_URL: edge.baseUrl, PENSTOCK_SECRET_KEY: key, ...settings }
    return runNode([MAIN, 'sourcemaps', 'upload', dist, ...args], env, cwd)
  }
})

/** Runs the command as a separate process, so that its environment contains nothing of this one. */
function runNode(argv: readonly string[], settings: Record<string, string> = {}, cwd = tmpdir()) {
  return new Promise<{ code: number; stdout: string; stderr: string }>(resolve => {
    const env = { PATH: process.env.PATH, ...settings }
    const child = execFile(process.execPath, argv, { env, cwd, timeout: 50_000 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode ?? -1, stdout, stderr }),
    )
  })
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Writes a build with different bytes each time. */
function largeMap(bytes: number): string {
  return JSON.stringify({ version: 3, mappings: '', sourcesContent: [randomBytes(bytes / 2).toString('hex')] })
}

async function contentsOf(directory: string): Promise<Record<string, string>> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = names.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
  return Object.fromEntries(await Promise.all(files.map(async path => [path, digest(await readFile(path))] as const)))
}
