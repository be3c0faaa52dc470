import { SEARCHED_WORKSPACE, type SearchedTable } from './search-blocks.ts'

/** A way to store a table, and how it is searched. */
export interface Layout {
  readonly name: string
  readonly table: SearchedTable
  /** Statements that change a copy of the product's table, whose name is `{table}`. */
  readonly changes?: readonly string[]
  /** Columns of a block, as a worker would send it. If left out, the block of the product. */
  readonly block?: string
  /** Queries by what they find. Those of one kind differ in the value, so that no answer is remembered. */
  readonly searches: Readonly<Record<string, readonly string[]>>
}

/** Layout that the others are compared with. */
export const AS_STORED = 'as stored'

/** Hashes of the attributes of a row, with their names: the expression of the index `by_attribute` (migration 0023). */
const HASHES = 'arrayMap((k, v) -> cityHash64(k, v), mapKeys(attributes), mapValues(attributes))'
const PAIRS = "arrayMap((k, v) -> concat(k, '=', v), mapKeys(attributes), mapValues(attributes))"

const addIndex = (name: string, definition: string) => `ALTER TABLE {table} ADD INDEX ${name} ${definition}`
const dropIndex = (name: string) => `ALTER TABLE {table} DROP INDEX IF EXISTS ${name}`
const bloom = (rate: number, granularity = 1) => `TYPE bloom_filter(${rate}) GRANULARITY ${granularity}`
const inWorkspace = `workspace_id = '${SEARCHED_WORKSPACE}'`

/** How a layout is searched for an attribute. */
interface AttributeSearch {
  is(key: string, value: string): string
  has(key: string): string
}

const byMap: AttributeSearch = {
  is: (key, value) => `attributes['${key}'] = '${value}'`,
  has: key => `mapContains(attributes, '${key}')`,
}
const byHash: AttributeSearch = {
  is: (key, value) => `indexHint(has(${HASHES}, cityHash64('${key}', '${value}'))) AND ${byMap.is(key, value)}`,
  has: byMap.has,
}
const byPair: AttributeSearch = { is: (key, value) => `has(${PAIRS}, '${key}=${value}')`, has: byMap.has }
const byKeySet: AttributeSearch = {
  is: (key, value) => `attribute_values[indexOf(splitByChar('\\0', attribute_keys), '${key}')] = '${value}'`,
  has: key => `has(splitByChar('\\0', attribute_keys), '${key}')`,
}
const byKeys: AttributeSearch = {
  is: (key, value) => `attribute_values[indexOf(attribute_keys, '${key}')] = '${value}'`,
  has: key => `has(attribute_keys, '${key}')`,
}

/** Layouts of spans. Each of the rare values is in one of 100,000 spans. */
export function spanLayouts(rareUsers: readonly string[]): Layout[] {
  const searches = ({ is, has }: AttributeSearch) => {
    const found = (condition: string) =>
      `SELECT trace_id, start_time_unix_nano FROM {table} WHERE ${inWorkspace} AND ${condition}
       ORDER BY start_time_unix_nano DESC LIMIT 20`
    return {
      'common value': ['GET', 'POST', 'PUT'].map(method => found(is('http.request.method', method))),
      'rare value': rareUsers.map(user => found(is('enduser.id', user))),
      'missing value': rareUsers.map(user => found(is('enduser.id', `${user}-`))),
      'key exists': [found(has('feature_flag.key'))],
      'key exists nowhere': [found(has('feature_flag.variant'))],
    }
  }
  const table = 'spans'
  const withoutIndex = dropIndex('by_attribute')
  const indexed = (name: string, definition: string, by: AttributeSearch): Layout => ({
    name,
    table,
    changes: [withoutIndex, addIndex('by_attribute', definition)],
    searches: searches(by),
  })
  const columns = (name: string, keys: string, block: string, by: AttributeSearch): Layout => ({
    name,
    table,
    changes: [
      withoutIndex,
      `ALTER TABLE {table} ADD COLUMN attribute_keys ${keys} AFTER status_message,
         ADD COLUMN attribute_values Array(String) CODEC(ZSTD(1)) AFTER attribute_keys, DROP COLUMN attributes`,
    ],
    block: `* EXCEPT (attributes), ${block} AS attribute_keys, mapValues(attributes) AS attribute_values`,
    searches: searches(by),
  })
  return [
    { name: AS_STORED, table, searches: searches(byHash) },
    { name: 'without an index', table, changes: [withoutIndex], searches: searches(byMap) },
    columns(
      'key set and values',
      'LowCardinality(String)',
      "CAST(arrayStringConcat(mapKeys(attributes), '\\0') AS LowCardinality(String))",
      byKeySet,
    ),
    columns(
      'keys and values',
      'Array(LowCardinality(String)) CODEC(ZSTD(1))',
      'CAST(mapKeys(attributes) AS Array(LowCardinality(String)))',
      byKeys,
    ),
    {
      name: 'map in buckets',
      table,
      changes: [
        withoutIndex,
        "ALTER TABLE {table} MODIFY SETTING map_serialization_version = 'with_buckets', map_buckets_min_avg_size = 0",
      ],
      searches: searches(byMap),
    },
    indexed('filter of values', `mapValues(attributes) ${bloom(0.01)}`, byMap),
    indexed('filter of attributes, 0.001', `${HASHES} ${bloom(0.001)}`, byHash),
    indexed('filter of attributes, 0.05', `${HASHES} ${bloom(0.05)}`, byHash),
    indexed('filter of attributes, four granules', `${HASHES} ${bloom(0.01, 4)}`, byHash),
    { name: 'with services of traces', table, changes: SERVICES_TABLE, searches: {} },
    indexed('text index of attributes', `${PAIRS} TYPE text(tokenizer = array)`, byPair),
  ]
}

/** Layouts of log records. A word is in one record, a user in one of 100,000. */
export function logLayouts(rareWords: readonly string[], rareUsers: readonly string[]): Layout[] {
  const searches = (word: (word: string) => string, { is }: AttributeSearch) => {
    const found = (condition: string) =>
      `SELECT timestamp, body FROM {table} WHERE ${inWorkspace} AND ${condition} ORDER BY timestamp DESC LIMIT 20`
    return {
      'common word': [found(word('payment'))],
      'common word over time': [
        `SELECT toStartOfSecond(timestamp) AS second, count() FROM {table}
         WHERE ${inWorkspace} AND ${word('payment')} GROUP BY second`,
      ],
      'rare word': rareWords.map(rare => found(word(rare))),
      'missing word': rareWords.map(rare => found(word(`${rare}f`))),
      'rare attribute': rareUsers.map(user => found(is('enduser.id', user))),
    }
  }
  const table = 'logs'
  const byToken = (word: string) => `hasToken(lower(body), '${word}')`
  const byText = (word: string) => `hasAnyTokens(lower(body), '${word}')`
  const withoutWords = dropIndex('logs_by_token')
  return [
    { name: AS_STORED, table, searches: searches(byToken, byHash) },
    { name: 'without an index of words', table, changes: [withoutWords], searches: searches(byToken, byHash) },
    {
      name: 'text index of words',
      table,
      changes: [withoutWords, addIndex('logs_by_word', 'lower(body) TYPE text(tokenizer = splitByNonAlpha)')],
      searches: searches(byText, byHash),
    },
    {
      name: 'without an index of attributes',
      table,
      changes: [dropIndex('by_attribute')],
      searches: searches(byToken, byMap),
    },
  ]
}

/** Layouts of data points. The points are of a day that begins at `beganAt`. */
export function pointLayouts(series: readonly string[], beganAt: bigint): Layout[] {
  const DAY_NS = 86_400_000_000_000n
  const metric = `${inWorkspace} AND metric_name = 'http.server.requests.1'`
  const ofDay = `${metric} AND time_unix_nano >= ${beganAt} AND time_unix_nano < ${beganAt + DAY_NS}`
  const minute = 'intDiv(time_unix_nano, 60000000000) AS minute'
  const searches = (is: (key: string, value: string) => string) => ({
    'one series, a day': series.map(
      id => `SELECT time_unix_nano, as_int FROM {table} WHERE ${ofDay} AND series_id = ${id}`,
    ),
    'label, a day': ['/api/checkout', '/healthz'].map(
      route =>
        `SELECT ${minute}, sum(as_int) FROM {table} WHERE ${ofDay} AND ${is('http.route', route)} GROUP BY minute`,
    ),
    'group by label, a day': [
      `SELECT attributes['http.route'] AS route, ${minute}, sum(as_int) FROM {table} WHERE ${ofDay} GROUP BY route, minute`,
    ],
    'names with their labels': [
      `SELECT metric_name, any(type), any(unit), groupUniqArrayArray(mapKeys(attributes)) FROM {table}
       WHERE ${inWorkspace} GROUP BY metric_name`,
    ],
  })
  const table = 'metric_points'
  const ofSeries = (key: string, value: string) =>
    `series_id IN (SELECT series_id FROM {table}_series WHERE ${metric} AND attributes['${key}'] = '${value}')`
  return [
    { name: AS_STORED, table, searches: searches(byMap.is) },
    {
      name: 'filter of labels',
      table,
      changes: [addIndex('by_attribute', `${HASHES} ${bloom(0.01)}`)],
      searches: searches(byHash.is),
    },
    {
      name: 'table of series',
      table,
      changes: SERIES_TABLE,
      searches: {
        ...searches(ofSeries),
        'group by label, a day': [
          `SELECT route, ${minute}, sum(as_int) FROM {table} AS points
           ANY LEFT JOIN (SELECT series_id, any(attributes['http.route']) AS route FROM {table}_series WHERE ${metric} GROUP BY series_id)
             AS series USING (series_id)
           WHERE ${ofDay} GROUP BY route, minute`,
        ],
        'names with their labels': [
          `SELECT metric_name, any(type), any(unit), groupUniqArrayArray(mapKeys(attributes)) FROM {table}_series
           WHERE ${inWorkspace} GROUP BY metric_name`,
        ],
      },
    },
  ]
}

/** Services of traces, as migration 0025 stores them, beside the copy of `spans`. */
const SERVICES_TABLE = [
  'CREATE TABLE {table}_services AS trace_services',
  `CREATE MATERIALIZED VIEW {table}_services_view TO {table}_services AS
   SELECT toDate(received_at) AS day, workspace_id, service_name, trace_id,
     max(least(start_time_unix_nano, toUInt64(toUnixTimestamp64Nano(received_at)))) AS last_start_unix_nano,
     max(if(end_time_unix_nano > start_time_unix_nano, end_time_unix_nano - start_time_unix_nano, 0)) AS longest_nanos,
     max(status_code = 2) AS has_error, groupBitOr(bitShiftLeft(toUInt64(1), cityHash64(name) % 64)) AS names
   FROM {table} GROUP BY day, workspace_id, service_name, trace_id`,
]

/** A row for each series and day, filled by a view. */
const SERIES_TABLE = [
  `CREATE TABLE {table}_series
   (day Date, workspace_id LowCardinality(String), metric_name LowCardinality(String), series_id UInt64,
    type SimpleAggregateFunction(any, String), unit SimpleAggregateFunction(any, String),
    attributes SimpleAggregateFunction(any, Map(String, String)), resource SimpleAggregateFunction(any, String))
   ENGINE = AggregatingMergeTree PARTITION BY day ORDER BY (workspace_id, metric_name, series_id)
   SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 10`,
  `CREATE MATERIALIZED VIEW {table}_series_view TO {table}_series AS
   SELECT toDate(received_at) AS day, workspace_id, metric_name, series_id, any(toString({table}.type)) AS type,
     any({table}.unit) AS unit, any({table}.attributes) AS attributes, any({table}.resource) AS resource
   FROM {table} GROUP BY day, workspace_id, metric_name, series_id`,
]
