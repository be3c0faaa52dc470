import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { BURNED_PREFIX } from '../../../clickhouse/burn-token.ts'
import { manifestSchema } from '../../../schemas/records/manifest.ts'
import { MIB } from '../../../schemas/units.ts'
import { createReleaseStore } from '../../../shared/directory/release-store.ts'
import { sourceMapKey } from '../../../shared/object-store/object-keys.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import type { ObjectStore } from '../../../shared/object-store/types.ts'
import { TransientError } from '../../../shared/runtime/errors.ts'
import { namedReceipts, receiptName } from '../clients/named-receipts.ts'
import { lettersOf } from '../oracles/list-dead-letters.ts'
import { until } from '../until.ts'
import type { SentBuild } from './build-client.ts'
import type { Installation } from './installation.ts'
import type { Ledger, LedgerEntry } from './ledger.ts'
import { REPLAY_SESSION } from './payloads.ts'

/** The stores that the ledger is compared with. */
type StoredState = Pick<Installation, 'secrets' | 's3' | 'clickhouse' | 'redis' | 'directory'>

/** The column of each table that contains the id of a row. */
const ID_COLUMNS: Readonly<Record<string, string>> = {
  spans: 'name',
  logs: 'body',
  metric_points: "splitByChar('\\0', attribute_values)[indexOf(splitByChar('\\0', attribute_keys), 'id') - 1]",
  session_heartbeats: 'session_id',
  session_identities: 'session_id',
  replay_chunks: 'segment_id',
  build_reports: 'release_slug',
}
const OBJECT_BYTES = MIB
const MOST_FAULTS = 20

/** Waits until no queue has anything left. */
export async function untilSettled({ queues }: Pick<Installation, 'queues'>, deadlineMs: number): Promise<void> {
  let left: Record<string, number> = {}
  await until(
    'every queue is empty',
    async () => {
      const { all } = await queues.read()
      const counts = await Promise.all(
        all.map(async ({ tag, redis, keys }) => [tag, await redis.zcard(keys.pending)] as const),
      )
      left = Object.fromEntries(counts.filter(([, count]) => count !== 0))
      return Object.keys(left).length === 0
    },
    { deadlineMs, everyMs: 200 },
  ).catch((error: Error) => {
    throw new Error(`${error.message}, but there are ${JSON.stringify(left)}`)
  })
}

/**
 * Compares what clients know of their payloads with what is stored, row by row and object by object. Returns the
 * differences, of each kind the first ones. Every queue must be empty.
 */
export async function compareLedger(
  installation: StoredState,
  ledger: Ledger,
  builds: readonly SentBuild[],
): Promise<string[]> {
  const objects = createObjectStore({ ...installation.s3, requestTimeoutMs: 10_000 })
  try {
    const found = await Promise.all([
      compareRows(installation, ledger),
      compareObjects(installation, ledger, objects),
      compareLetters(installation, ledger, objects),
      compareReceipts(installation, ledger, builds),
      compareBuilds(installation, builds, objects),
      compareViews(installation),
    ])
    return found.flatMap(faults =>
      faults.length > MOST_FAULTS
        ? [...faults.slice(0, MOST_FAULTS), `and ${faults.length - MOST_FAULTS} more`]
        : faults,
    )
  } finally {
    objects.close()
  }
}

/** Rows that burn the token of a batch that was formed differently, as by rules that are no longer known, are of no workspace. */
const IS_SENT = `NOT startsWith(workspace_id, '${BURNED_PREFIX}')`

/** Every acknowledged row is stored once, every unknown one at most once with all of its payload, and there is no other. */
async function compareRows(installation: StoredState, ledger: Ledger): Promise<string[]> {
  const faults: string[] = []
  for (const [table, column] of Object.entries(ID_COLUMNS)) {
    const rows = await select<{ id: string; count: string }>(
      installation,
      `SELECT ${column} AS id, count() AS count FROM ${table} WHERE ${IS_SENT} GROUP BY id`,
    )
    const stored = new Map(rows.map(({ id, count }) => [id, Number(count)]))
    for (const entry of ledger.entries) {
      if (entry.table !== table) continue
      const counts = entry.rows.map(id => stored.get(id) ?? 0)
      for (const id of entry.rows) stored.delete(id)
      const fault = faultOf(entry, counts)
      if (fault) faults.push(`${table}: ${describe(entry)} ${fault}`)
    }
    for (const [id, count] of stored) faults.push(`${table}: ${id} is stored ${count} times, but was never sent`)
  }
  return faults
}

function faultOf(entry: LedgerEntry, counts: readonly number[]): string | undefined {
  if (counts.length === 0) return undefined
  const [least, most] = [Math.min(...counts), Math.max(...counts)]
  if (most > 1) return `is stored ${most} times`
  if (least !== most) return 'is stored in part'
  if (entry.outcome === 'acknowledged' && least === 0) return 'is not stored'
  if (entry.outcome === 'refused' && most > 0) return 'is stored'
  return undefined
}

/** Reads an object, once more if the first connection was one that a fault had broken. */
async function readObject(objects: ObjectStore, key: string, limitBytes: number) {
  return objects.get(key, limitBytes).catch(error => {
    if (error instanceof TransientError) return objects.get(key, limitBytes)
    throw error
  })
}

/** Every stored chunk has one object with the bytes that were sent, and there is no object without a row. */
async function compareObjects(installation: StoredState, ledger: Ledger, objects: ObjectStore): Promise<string[]> {
  const faults: string[] = []
  const keys = new Set(await keysBelow(objects, 'replays/'))
  const rows = await select<{ key: string; sha256: string }>(
    installation,
    `SELECT object_key AS key, lower(hex(sha256)) AS sha256 FROM replay_chunks WHERE session_id = '${REPLAY_SESSION}'`,
  )
  const digests = new Map(rows.map(({ key, sha256 }) => [key, sha256]))
  for (const entry of ledger.entries) {
    if (entry.object === undefined) continue
    const { key, sha256 } = entry.object
    if (digests.has(key) !== keys.has(key)) faults.push(`${key} has ${keys.has(key) ? 'no row' : 'no object'}`)
    if (!keys.delete(key)) continue
    const object = await readObject(objects, key, OBJECT_BYTES)
    const stored = createHash('sha256')
      .update(gunzipSync(object?.body ?? Buffer.alloc(0)))
      .digest('hex')
    if (stored !== sha256 || digests.get(key) !== sha256) faults.push(`${key} has other bytes than were sent`)
  }
  return [...faults, ...[...keys].map(key => `${key} was never sent`)]
}

/** Every acknowledged export that is broken is one dead letter with its row, and nothing else is a dead letter. */
async function compareLetters(installation: StoredState, ledger: Ledger, objects: ObjectStore): Promise<string[]> {
  const faults: string[] = []
  const counts = new Map<string, number>()
  const rows = await select<{ id: string; count: string }>(
    installation,
    `SELECT concat(job_id, ' ', toString(job_index)) AS id, count() AS count FROM dead_letters GROUP BY id`,
  )
  const indexed = new Map(rows.map(({ id, count }) => [id, Number(count)]))
  for (const key of await keysBelow(objects, 'dead-letters/')) {
    const object = await readObject(objects, key, 16 * OBJECT_BYTES)
    for (const { body, contentEncoding, jobId, index, queue, reason } of lettersOf(object?.body ?? Buffer.alloc(0))) {
      const id = contentEncoding === 'gzip' ? (/^no export (p\d+)$/.exec(gunzipSync(body).toString())?.[1] ?? '') : ''
      counts.set(id, (counts.get(id) ?? 0) + 1)
      if (id === '') faults.push(`a good payload of ${queue} is a dead letter: ${reason}`)
      const name = `${jobId} ${index}`
      if (indexed.get(name) !== 1) faults.push(`the dead letter ${name} has ${indexed.get(name) ?? 0} rows`)
      indexed.delete(name)
    }
  }
  for (const [name, count] of indexed) faults.push(`the dead letter ${name} has ${count} rows and no object`)
  for (const entry of ledger.entries) {
    if (entry.fate !== 'dead-lettered') continue
    const count = counts.get(entry.id) ?? 0
    const isRight = entry.outcome === 'acknowledged' ? count === 1 : count <= (entry.outcome === 'unknown' ? 1 : 0)
    if (!isRight) faults.push(`${describe(entry)} is ${count} dead letters`)
  }
  return faults
}

/** The log contains every receipt that a client has once, and counts the rows that are stored. */
async function compareReceipts(
  installation: StoredState,
  ledger: Ledger,
  builds: readonly SentBuild[],
): Promise<string[]> {
  const faults: string[] = []
  const named = await namedReceipts(query => select(installation, query))
  for (const entry of ledger.entries) {
    if (entry.outcome !== 'acknowledged') continue
    const { receiptId = 'none' } = entry
    const count = receiptId === 'none' ? 0 : (named.get(receiptName(receiptId)) ?? 0)
    if (count !== 1) faults.push(`the log contains the receipt of ${describe(entry)} ${count} times`)
  }
  for (const { slug, receiptIds } of builds) {
    for (const id of receiptIds) {
      const count = named.get(receiptName(id)) ?? 0
      if (count !== 1) faults.push(`the log contains a receipt of the build ${slug} ${count} times`)
    }
  }
  for (const [name, count] of named) if (count > 1) faults.push(`the log contains the receipt ${name} ${count} times`)
  const logged = await select<{ signal: string; rows: string }>(
    installation,
    'SELECT signal, sum(rows) AS rows FROM ingest_log GROUP BY signal',
  )
  const rowsOf = new Map(logged.map(({ signal, rows }) => [signal, Number(rows)]))
  for (const [signal, tables] of Object.entries(TABLES_OF_SIGNAL)) {
    const stored = await Promise.all(tables.map(table => countOf(installation, table)))
    const sum = stored.reduce((total, count) => total + count, 0)
    if ((rowsOf.get(signal) ?? 0) !== sum) {
      faults.push(`the log counts ${rowsOf.get(signal) ?? 0} rows of ${signal}, but there are ${sum}`)
    }
  }
  return faults
}

/** Tables of each signal in the log. */
const TABLES_OF_SIGNAL: Readonly<Record<string, readonly string[]>> = {
  traces: ['spans'],
  logs: ['logs'],
  metrics: ['metric_points'],
  sessions: ['session_heartbeats', 'session_identities'],
  replay: ['replay_chunks'],
  'build-reports': ['build_reports'],
}

/** Every completed build has its map in the manifest, in the object store and in the table. */
async function compareBuilds(
  { directory, secrets, ...installation }: StoredState,
  builds: readonly SentBuild[],
  objects: ObjectStore,
): Promise<string[]> {
  const faults = builds.flatMap(({ slug, faults }) => faults.map(fault => `the build ${slug} was refused ${fault}`))
  const releases = createReleaseStore(directory)
  const rows = await select<{ slug: string; count: string }>(
    installation,
    'SELECT release_slug AS slug, count() AS count FROM source_maps FINAL GROUP BY slug',
  )
  const indexed = new Map(rows.map(({ slug, count }) => [slug, Number(count)]))
  for (const { slug, path, bytes, sha256, isUploaded, isCompleted } of builds) {
    if (isUploaded && !isCompleted) faults.push(`the build ${slug} cannot be completed`)
    if (!isCompleted) continue
    const pointer = await releases.manifest(secrets.workspaceId, slug)
    const manifest = pointer && (await objects.get(pointer.objectKey, OBJECT_BYTES))
    const files = manifest ? manifestSchema.parse(JSON.parse(manifest.body.toString())).files : []
    const isNamed = files.length === 1 && files[0]?.path === path && files[0].sha256 === sha256
    if (!isNamed) faults.push(`the manifest of ${slug} does not have its map`)
    const map = await objects.get(sourceMapKey(secrets.workspaceId, sha256), OBJECT_BYTES)
    if (!map?.body.equals(bytes)) faults.push(`the map of ${slug} is not stored as it was sent`)
    if (indexed.get(slug) !== 1) faults.push(`the map of ${slug} has ${indexed.get(slug) ?? 0} rows`)
  }
  return faults
}

/** The tables that are derived from others count what those contain. */
async function compareViews(installation: StoredState): Promise<string[]> {
  const [counts] = await select<Record<string, string>>(
    installation,
    `SELECT
      (SELECT countIf(status_code = 2) FROM spans WHERE ${IS_SENT}) AS failed,
      (SELECT count() FROM exceptions WHERE ${IS_SENT}) AS exceptions,
      (SELECT uniqExact(span_name) FROM exceptions WHERE ${IS_SENT}) AS distinct_exceptions,
      (SELECT sum(occurrence_count) FROM findings WHERE ${IS_SENT}) AS findings,
      (SELECT sum(occurrence_count) FROM finding_buckets WHERE ${IS_SENT}) AS finding_buckets,
      (SELECT count() FROM spans WHERE ${IS_SENT}) AS spans,
      (SELECT sum(span_count) FROM session_traces) AS session_traces,
      (SELECT sum(spans) FROM span_stats) AS span_stats,
      (SELECT sum(end_time_unix_nano - start_time_unix_nano) FROM spans WHERE ${IS_SENT}) AS nanoseconds,
      (SELECT sum(duration_sum_nano) FROM span_stats) AS counted_nanoseconds`,
  )
  const faults: string[] = []
  for (const name of ['exceptions', 'distinct_exceptions', 'findings', 'finding_buckets']) {
    if (counts?.[name] !== counts?.failed)
      faults.push(`${name} count ${counts?.[name]} of ${counts?.failed} failed spans`)
  }
  for (const name of ['session_traces', 'span_stats']) {
    if (counts?.[name] !== counts?.spans) faults.push(`${name} count ${counts?.[name]} of ${counts?.spans} spans`)
  }
  if (counts?.counted_nanoseconds !== counts?.nanoseconds) {
    faults.push(`span_stats count ${counts?.counted_nanoseconds} of ${counts?.nanoseconds} ns`)
  }
  return faults
}

const describe = ({ id, outcome, answer }: LedgerEntry) => `${id} (${outcome}: ${answer})`

async function countOf(installation: Pick<Installation, 'clickhouse'>, table: string): Promise<number> {
  const [row] = await select<{ count: string }>(installation, `SELECT count() AS count FROM ${table} WHERE ${IS_SENT}`)
  return Number(row?.count)
}

async function select<T>({ clickhouse }: Pick<Installation, 'clickhouse'>, query: string): Promise<T[]> {
  const result = await clickhouse.query({ query, format: 'JSONEachRow' })
  return result.json<T>()
}

async function keysBelow(objects: ObjectStore, prefix: string): Promise<string[]> {
  const keys: string[] = []
  for await (const page of objects.list(prefix)) keys.push(...page.map(({ key }) => key))
  return keys
}
