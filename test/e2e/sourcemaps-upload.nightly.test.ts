import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { manifestSchema } from '../../schemas/records/manifest.ts'
import { MIB } from '../../schemas/units.ts'
import { createReleaseStore } from '../../shared/directory/release-store.ts'
import { sourceMapKey } from '../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { createReleaseClient, entryOf, type FileEntry, mapOf } from '../support/clients/release-client.ts'
import { rounds } from '../support/length.ts'
import { type Stack, startStack } from '../support/services/stack.ts'
import { until } from '../support/until.ts'

const MAIN = fileURLToPath(new URL('../../cli/main.ts', import.meta.url))
const DIRECTORIES = 30
/** Files of the large build; the small one has a fifth of it. */
const FILES = rounds(3_000)
/** Interval of listings; listing thousands of objects costs the store more than an upload. */
const LOOK_EVERY_MS = 300

let stack: Stack
let objects: ObjectStore
let redis: Redis
let dist: string

beforeAll(async () => {
  stack = await startStack({ JOB_LOCK_MS: '2000', JOB_STALLED_CHECK_MS: '500', SWEEP_INTERVAL_MS: '1000' })
  objects = createObjectStore({ ...stack.services.s3, requestTimeoutMs: 10_000 })
  redis = new Redis(stack.services.redisUrl)
})
afterAll(async () => {
  redis?.disconnect()
  objects?.close()
  await stack?.stop()
})
beforeEach(async () => {
  dist = await mkdtemp(join(tmpdir(), 'penstock-dist-'))
})
afterEach(() => rm(dist, { recursive: true }))

it.each([
  // The small build comes first, so that listings during the large one see few other objects.
  [FILES / 5, 'in parts through the service', ['--parts']],
  [FILES, 'to presigned URLs', []],
] as const)(
  'a build of %i files uploaded %s arrives completely in spite of kill -9 of edge and workers',
  async (fileCount, _way, args) => {
    await writeBuild(randomBytes(4).toString('hex'), fileCount)
    const before = { uploads: await count('uploads/'), maps: await count('source-maps/') }
    const command = startUpload(`v-${randomBytes(4).toString('hex')}`, args)
    const isUnderWay = (what: string, prefix: string, above: number) =>
      until(`${what} is under way`, async () => command.hasEnded() || (await count(prefix)) > above, {
        deadlineMs: 90_000,
        everyMs: LOOK_EVERY_MS,
      })

    await isUnderWay('the upload', 'uploads/', before.uploads + fileCount / 10)
    await Promise.all([stack.edge.kill9(), stack.workers.kill9()])
    await until(
      'the command has noticed the outage',
      () => command.hasEnded() || /; retrying in \d/.test(command.stderr()),
    )
    await Promise.all([stack.edge.restart(), stack.workers.restart()])

    await isUnderWay('the completion', 'source-maps/', before.maps)
    expect(command.hasEnded(), command.stderr()).toBe(false)
    await Promise.all([stack.edge.kill9(), stack.workers.kill9()])
    await Promise.all([stack.edge.restart(), stack.workers.restart()])

    expect(await command.ended, command.stderr()).toBe(0)
    const { result, releaseSlug, files } = JSON.parse(command.stdout())
    expect({ result, files: files.length }).toEqual({ result: 'ok', files: fileCount })

    const pointer = await createReleaseStore(redis).manifest(stack.secrets.workspaceId, releaseSlug)
    expect(pointer).toMatchObject({ sourceMapCount: fileCount, sourceFileCount: fileCount })
    const object = await objects.get(pointer?.objectKey ?? '', 16 * MIB)
    const manifest = manifestSchema.parse(JSON.parse(object?.body.toString() ?? ''))
    expect(manifest.files.map(({ path }) => path)).toEqual(files.map(({ path }: { path: string }) => path))
    const wrong: string[] = []
    for (let i = 0; i < fileCount; i += 50) {
      await Promise.all(
        manifest.files.slice(i, i + 50).map(async ({ path, sha256, verified, debugId }) => {
          const local = await readFile(join(dist, path))
          const stored = await objects.get(sourceMapKey(stack.secrets.workspaceId, sha256), MIB)
          const isRight = stored?.body.equals(local) && digest(local) === sha256 && verified
          if (!isRight || JSON.parse(local.toString()).debugId !== debugId) wrong.push(path)
        }),
      )
    }
    expect(wrong).toEqual([])
    expect(await count('dead-letters/')).toBe(0)
  },
)

it('a release goes back to an earlier completion that is sent again, in spite of kill -9 of the workers', async () => {
  const client = createReleaseClient(stack.ingestUrl, stack.secrets.secretKey)
  const slug = await client.register(`back-${randomBytes(4).toString('hex')}`)
  const maps = ['a.js.map', 'b.js.map'].map(path => ({ path, bytes: mapOf(randomBytes(8).toString('hex')) }))
  await client.upload(slug, maps)
  const [first, second] = maps.map(map => [entryOf(map)]) as [FileEntry[], FileEntry[]]
  const completed = (files: FileEntry[]) =>
    until('the release is completed', async () => {
      const { status, body } = await client.complete(slug, files)
      return status !== 503 && { status, body }
    })
  const done = { status: 200, body: { ok: true, fileCount: 1 } }
  expect(await completed(first)).toEqual(done)
  expect(await completed(second)).toEqual(done)
  await stack.workers.kill9()
  const again = completed(first)
  await stack.workers.restart()
  expect(await again).toEqual(done)
  const pointer = await createReleaseStore(redis).manifest(stack.secrets.workspaceId, slug)
  const object = await objects.get(pointer?.objectKey ?? '', MIB)
  const manifest = manifestSchema.parse(JSON.parse(object?.body.toString() ?? ''))
  expect(manifest.files.map(({ path }) => path)).toEqual(['a.js.map'])
})

/** Writes bundles and maps that are all different, also between builds. */
async function writeBuild(seed: string, fileCount: number): Promise<void> {
  for (let i = 0; i < DIRECTORIES; i++) await mkdir(join(dist, `d${i}`))
  for (let i = 0; i < fileCount; i += 100) {
    await Promise.all(
      Array.from({ length: Math.min(100, fileCount - i) }, async (_, j) => {
        const name = `d${(i + j) % DIRECTORIES}/chunk-${i + j}.js`
        const map = {
          version: 3,
          sources: [`${seed}-${i + j}.ts`],
          sourcesContent: ['f()'],
          names: [],
          mappings: 'AAAA',
        }
        await writeFile(join(dist, name), `f();\n//# sourceMappingURL=chunk-${i + j}.js.map\n`)
        await writeFile(join(dist, `${name}.map`), JSON.stringify(map))
      }),
    )
  }
}

function startUpload(version: string, args: readonly string[]) {
  const argv = [MAIN, 'sourcemaps', 'upload', dist, '--version', version, '--json']
  const child = spawn(process.execPath, [...argv, '--retry-timeout', '120', ...args], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, PENSTOCK_URL: stack.ingestUrl, PENSTOCK_SECRET_KEY: stack.secrets.secretKey },
    timeout: 170_000,
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', chunk => (stdout += chunk))
  child.stderr.on('data', chunk => (stderr += chunk))
  let hasEnded = false
  const ended = new Promise<number | null>(resolve => {
    child.once('close', code => {
      hasEnded = true
      resolve(code)
    })
  })
  return { ended, hasEnded: () => hasEnded, stdout: () => stdout, stderr: () => stderr }
}

async function count(prefix: string): Promise<number> {
  let found = 0
  for await (const page of objects.list(prefix)) found += page.length
  return found
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
