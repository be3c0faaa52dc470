import { gzipSync } from 'node:zlib'
import { DIAGNOSIS_READS, selectDiagnosis } from '../../clickhouse/queries/select-diagnosis.ts'
import { MIB } from '../../schemas/units.ts'
import type { Queues } from '../../shared/queue/queues.ts'
import { runningLoads, runningWorkers } from '../../shared/queue/watch/worker-heartbeats.ts'
import { readOldestWatermarks } from '../../shared/queue/watermark.ts'
import { BUILD } from '../../shared/runtime/build-info.ts'
import { describeError } from '../../shared/runtime/errors.ts'
import { withDeadline } from '../../shared/runtime/lifecycle.ts'
import { readSecretFiles } from '../../shared/runtime/secret-files.ts'
import type { BundleCommandContext, DirectoryConnection } from '../command-context.ts'
import { readQueueRows } from '../queues/queue-rows.ts'
import { redactorOf } from './redact.ts'
import { describeSettings, withoutCredentials } from './settings.ts'
import { type ArchivedFile, tarOf } from './tar.ts'

/** Time for each source, and for all of them. A store that does not answer holds up no other. */
const SOURCE_DEADLINE_MS = 15_000
/** Bytes of one file, and of all of them before they are packed. */
const FILE_BYTES = 4 * MIB
const BUNDLE_BYTES = 48 * MIB
const MAX_WORKSPACES = 1_000
const ADMIN_PATHS = ['readyz', 'livez', 'queues', 'metrics'] as const
/** Settings of Redis on which its durability and its memory depend. */
const REDIS_SETTINGS = [
  ...['appendonly', 'appendfsync', 'no-appendfsync-on-rewrite', 'save', 'maxmemory', 'maxmemory-policy'],
  ...['min-replicas-to-write', 'timeout', 'maxclients'],
]

/** A debug bundle. */
interface Bundle {
  /** A gzipped archive. */
  readonly bytes: Buffer
  readonly files: number
  /** Sources that could not be read, each with the reason. */
  readonly missing: readonly string[]
}

/** Reads from one source, and adds what it has found. */
type Source = (add: (name: string, content: string | object) => void) => Promise<void>

/**
 * Collects what explains the state of an installation: versions, settings, queues, stores and the admin ports of processes. It has
 * no secret, no request and no value of a row. Sources that do not answer are named in `missing.txt`.
 */
export async function makeBundle(context: BundleCommandContext, adminUrls: readonly string[]): Promise<Bundle> {
  const { env } = readSecretFiles(await context.environment())
  const redact = redactorOf(env, adminUrls)
  const files: ArchivedFile[] = []
  const missing: string[] = []
  let left = BUNDLE_BYTES
  const add = (name: string, content: string | object) => {
    const text = redact(typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`)
    const bytes = Buffer.from(text).subarray(0, Math.min(FILE_BYTES, left))
    if (bytes.length < Buffer.byteLength(text)) missing.push(`${name}: cut to ${bytes.length} bytes`)
    left -= bytes.length
    files.push({ name: `penstock-debug/${name}`, content: bytes })
  }
  add('about.json', aboutProcess(context.now()))
  add('settings.json', describeSettings(await context.environment()))
  await Promise.all(
    Object.entries(sourcesOf(context, adminUrls)).map(async ([name, read]) => {
      try {
        await withDeadline(read(add), SOURCE_DEADLINE_MS, 'it did not answer in time')
      } catch (error) {
        missing.push(`${name}: ${redact(describeError(error)).replaceAll(/\s+/g, ' ')}`)
      }
    }),
  )
  if (missing.length > 0) add('missing.txt', `${missing.join('\n')}\n`)
  return { bytes: gzipSync(tarOf(files, context.now())), files: files.length, missing }
}

function aboutProcess(nowMs: number): object {
  const { version: node, platform, arch } = process
  return { createdAt: new Date(nowMs).toISOString(), ...BUILD, node, platform, arch }
}

function sourcesOf(context: BundleCommandContext, adminUrls: readonly string[]): Record<string, Source> {
  const ofProcesses = adminUrls.map((url, i): [string, Source] => {
    const name = `processes/${i + 1}`
    return [`${name} (${withoutCredentials(url) ?? 'not an address'})`, add => readProcess(context, { url, name }, add)]
  })
  const ofClickHouse = DIAGNOSIS_READS.map((read): [string, Source] => [
    `clickhouse/${read}`,
    add =>
      context.withClickHouse(async clickhouse => {
        const shards = await selectDiagnosis(clickhouse, read, AbortSignal.timeout(SOURCE_DEADLINE_MS))
        add(`clickhouse/${read}.json`, shards.length === 1 ? (shards[0] ?? []) : shards)
      }),
  ])
  return {
    'redis of the queues': add => context.withQueues(queues => readRedisOfQueues(queues, add)),
    queues: add => context.withQueues(queues => readQueues(queues, add)),
    directory: add => context.withDirectory(directory => readDirectory(directory, add)),
    ...Object.fromEntries(ofClickHouse),
    ...Object.fromEntries(ofProcesses),
  }
}

async function readRedisOfQueues(queues: Queues, add: Parameters<Source>[0]): Promise<void> {
  const { all } = await queues.read()
  const servers = new Map(all.map(({ server, redis }) => [server, redis]))
  for (const [server, redis] of servers) await readRedis(redis, `redis/${server}`, add)
}

async function readRedis(redis: DirectoryConnection['redis'], name: string, add: Parameters<Source>[0]): Promise<void> {
  add(`${name}-info.txt`, await redis.info())
  const settings: Record<string, string> = {}
  for (const setting of REDIS_SETTINGS) {
    // A service may forbid it.
    const read = await redis.config('GET', setting).catch(error => [setting, describeError(error)])
    settings[setting] = String((read as string[])[1] ?? '')
  }
  add(`${name}-settings.json`, settings)
}

async function readQueues(queues: Queues, add: Parameters<Source>[0]): Promise<void> {
  add('queues.json', await readQueueRows(queues))
  add('watermarks.json', await readOldestWatermarks(queues))
  add('workers.json', { running: await runningWorkers(queues.common), loads: await runningLoads(queues.common) })
  const { numbers } = await queues.read()
  add('partitions.json', { numbers })
}

/** Names of workspaces and surfaces are data of their owners, so there are only ids. */
async function readDirectory({ redis, store }: DirectoryConnection, add: Parameters<Source>[0]): Promise<void> {
  await readRedis(redis, 'redis/directory', add)
  const workspaces: { readonly id: string; readonly surfaces: number }[] = []
  let count = 0
  for await (const { id } of store.workspaces()) {
    count++
    if (count <= MAX_WORKSPACES) workspaces.push({ id, surfaces: (await store.surfaceIds(id)).length })
  }
  add('directory.json', { workspaces: count, first: workspaces })
}

async function readProcess(
  { fetch }: BundleCommandContext,
  { url, name }: { readonly url: string; readonly name: string },
  add: Parameters<Source>[0],
): Promise<void> {
  for (const path of ADMIN_PATHS) {
    const response = await fetch(new URL(`/${path}`, url), { signal: AbortSignal.timeout(SOURCE_DEADLINE_MS) })
    const text = await response.text()
    // The API has no queues.
    if (path === 'queues' && response.status === 404) continue
    add(`${name}/${path}.txt`, path === 'metrics' ? text : `status ${response.status}\n${text}`)
  }
}
