/**
 * Columns whose bytes decide, together with the workspace, on the shard of a row. A further column counts if the one before it has
 * only zeros. A trace is on one shard with its exceptions, so that views fill tables beside those that they read.
 */
type ShardKey = readonly [string] | readonly [string, string]

/**
 * The tables that are filled from outside of ClickHouse. `deleted_rows` and `request_counts` are not listed: rows of the
 * first are beside the rows that were deleted, and the second is on the first shard.
 */
export const SHARD_KEYS: Readonly<Record<string, ShardKey>> = {
  spans: ['trace_id'],
  // Neither a record nor an exception must belong to a trace.
  logs: ['trace_id', 'timestamp'],
  exceptions: ['trace_id', 'variant_id'],
  failures: ['trace_id', 'variant_id'],
  exception_twins: ['trace_id', 'variant_id'],
  // Rows that move a variant. Its occurrences are on the shards of their traces.
  finding_variants: ['variant_id'],
  metric_points: ['series_id'],
  session_identities: ['session_id'],
  session_heartbeats: ['session_id'],
  replay_chunks: ['session_id'],
  build_reports: ['release_slug'],
  dead_letters: ['job_id'],
  // Requests of some kinds have no receipt.
  ingest_log: ['receipt_commit', 'job_id'],
  finding_frames: ['variant_id'],
  source_maps: ['debug_id'],
  span_stats: ['minute'],
}

/** Tables that views fill from the traces of their shard, with the key of these. Other views aggregate over traces. */
const KEYS_OF_VIEWS: Readonly<Record<string, ShardKey>> = {
  session_traces: ['trace_id'],
  trace_buckets: ['trace_id'],
}

/** A column of a table, as `system.columns` lists it. */
export interface ShardKeyColumn {
  readonly name: string
  readonly type: string
}

/**
 * Returns the shard of a row as an expression of ClickHouse, before it is divided by the number of shards. It equals
 * `shardsOfRows`. Returns undefined if rows have no shard of their own.
 */
export function shardExpression(table: string, columns: readonly ShardKeyColumn[]): string | undefined {
  const key = SHARD_KEYS[table] ?? KEYS_OF_VIEWS[table]
  if (key === undefined) return undefined
  const [first, second] = key.map(name => columns.find(column => column.name === name))
  if (first === undefined) throw new TypeError(`${table} has no column ${key[0]}`)
  const bytes = second ? `if(${isZero(first)}, ${bytesOf(second)}, ${bytesOf(first)})` : bytesOf(first)
  return `CRC32(concat(toString(workspace_id), ${bytes}))`
}

/** `concat` keeps zeros at the end, which conversions to String cut. */
function bytesOf({ name, type }: ShardKeyColumn): string {
  if (type === 'String') return name
  if (type.startsWith('FixedString')) return `concat('', ${name})`
  return `concat('', reinterpretAsFixedString(${type.startsWith('DateTime64') ? `toUnixTimestamp64Nano(${name})` : name}))`
}

function isZero({ name, type }: ShardKeyColumn): string {
  return `${name} = toFixedString('', ${/^FixedString\((\d+)\)$/.exec(type)?.[1]})`
}
