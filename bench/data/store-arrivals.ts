import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { quoteIdentifier } from '../../clickhouse/quote.ts'
import type { Signal } from '../../schemas/queues/names.ts'
import { withExceptions } from '../../test/support/oracles/with-exceptions.ts'
import { createLogsBatch } from '../../workers/otlp/logs/logs.ts'
import { createMetricsBatch } from '../../workers/otlp/metrics/metrics.ts'
import type { OtlpBatch } from '../../workers/otlp/protobuf/otlp-batch.ts'
import { createSpansBatch } from '../../workers/otlp/traces/spans.ts'
import { PART_SETTINGS, TIMEOUT_MS } from './insert-parts.ts'

/** A payload as an edge accepts it. */
export interface Arrival {
  readonly workspaceId: string
  readonly receivedAtMs: number
  /** Read before the next arrival is taken. */
  readonly body: Buffer
}

/** Rows of a block. A part is made of several. */
const ROWS = 100_000

const CREATE_BATCH: Record<Signal, () => OtlpBatch> = {
  traces: () => withExceptions(createSpansBatch()),
  logs: () => withExceptions(createLogsBatch()),
  metrics: () => createMetricsBatch(),
}

/**
 * Stores payloads by the decoder and the columns of this checkout, in one insert a table, whose rows of a partition form one
 * part. Nothing else in the bench knows how a span, a log record or a point is stored.
 */
export async function storeArrivals(
  client: ClickHouseClient,
  signal: Signal,
  arrivals: Iterable<Arrival>,
): Promise<void> {
  const batch = CREATE_BATCH[signal]()
  const derived = new Map<string, TableBlock[]>()
  const blocks = blocksOf(batch, arrivals, block =>
    derived.set(block.table, [...(derived.get(block.table) ?? []), block]),
  )
  await insertBlocks(client, blocks)
  for (const others of derived.values()) await insertBlocks(client, others.values())
}

/** A block whose memory is its own. */
interface TableBlock {
  readonly table: string
  readonly columns: readonly string[]
  readonly bytes: Buffer
}

/** Decodes payloads. Yields the blocks of the signal's own table, and calls `derive` with those of others. */
function* blocksOf(
  batch: OtlpBatch,
  arrivals: Iterable<Arrival>,
  derive: (block: TableBlock) => void,
): Generator<TableBlock> {
  const take = () => {
    const [own, ...others] = batch
      .tables()
      .map(({ table, columns, block }): TableBlock => ({ table, columns, bytes: Buffer.concat(block) }))
    batch.reset()
    for (const other of others) derive(other)
    return own as TableBlock
  }
  for (const { workspaceId, receivedAtMs, body } of arrivals) {
    const result = batch.append({ workspaceId, surfaceId: `srf_${workspaceId}`, receivedAtMs }, body)
    if (!result.ok) throw new Error(`a payload of the bench was refused: ${result.reason}`)
    if (batch.rows >= ROWS) yield take()
  }
  if (batch.rows > 0) yield take()
}

/** Inserts blocks of one table. */
async function insertBlocks(client: ClickHouseClient, blocks: Iterator<TableBlock>): Promise<void> {
  const first = blocks.next().value as TableBlock | undefined
  if (first === undefined) return
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const { stream } = await client.exec({
    query: `INSERT INTO ${quoteIdentifier(first.table)} (${first.columns.map(quoteIdentifier).join(', ')}) FORMAT Native`,
    values: Readable.from(bytesOf(first, blocks), { objectMode: false }),
    abort_signal: signal,
    clickhouse_settings: { ...PART_SETTINGS, input_format_skip_unknown_fields: 0 },
  })
  stream.resume()
  await finished(stream, { signal, writable: false })
}

function* bytesOf(first: TableBlock, rest: Iterator<TableBlock>): Generator<Buffer> {
  yield first.bytes
  for (let next = rest.next(); !next.done; next = rest.next()) yield next.value.bytes
}
