import type { ClickHouseClient } from '../../../clickhouse/client.ts'
import {
  MOST_SURFACES,
  selectTraceArrivals,
  type TraceArrivals,
} from '../../../clickhouse/queries/traces/completeness/select-trace-arrivals.ts'
import type { TraceKey } from '../../../clickhouse/queries/traces/select-trace.ts'
import {
  COLUMNS_AT,
  type ColumnsRow,
  selectTraceColumns,
} from '../../../clickhouse/queries/traces/select-trace-columns.ts'
import { selectTraceEnd } from '../../../clickhouse/queries/traces/select-trace-end.ts'
import { SPAN_AT } from '../../../clickhouse/queries/traces/span-row.ts'
import { MIB } from '../../../schemas/units.ts'
import { type ArrangedTrace, doubled, TraceSkeleton } from '../trace-skeleton.ts'
import { TextIndex } from './text-index.ts'

/** All spans of a trace, as columns. */
export interface TraceColumns {
  readonly skeleton: TraceSkeleton
  readonly arranged: ArrangedTrace
  /** Further columns of the rows of the skeleton: `skeleton.rowOf` is the position in each column. */
  readonly facts: SpanFacts
  readonly names: readonly string[]
  readonly services: readonly string[]
  /** Those of all stored rows, duplicates included. */
  readonly arrivals: TraceArrivals
  /** Whether further stored rows were not examined. */
  readonly truncated: boolean
}

/** Columns of the stored rows of a trace, in the order in which they were read. */
interface SpanFacts {
  readonly flags: Uint32Array
  readonly kinds: Uint8Array
  readonly statuses: Uint8Array
  /** Indexes of texts, or NOT_KEPT. */
  readonly names: Int32Array
  readonly services: Int32Array
}

const FIRST_CAPACITY = 1_024
/** Limits of the distinct texts of a response. */
const NAME_BYTES = 4 * MIB
const SERVICE_BYTES = MIB

/**
 * Loads the columns of a trace (docs/api/traces.md#trace-columns), or undefined if nothing of it is retained. At most `maxRows`
 * stored rows are examined, the first ones by start. Throws a TransientError if ClickHouse does not respond before the signal
 * fires. A million spans take 90 MB.
 */
export async function loadColumns(
  client: ClickHouseClient,
  key: TraceKey,
  maxRows: number,
  signal: AbortSignal,
): Promise<TraceColumns | undefined> {
  const skeleton = new TraceSkeleton({ keepsRows: true, keepsColumns: true })
  const facts = new GrowingFacts()
  const names = new TextIndex(NAME_BYTES)
  const services = new TextIndex(SERVICE_BYTES)
  const arrivals = new GrowingArrivals()
  let rowCount = 0
  const add = (found: ColumnsRow) => {
    const { bytes, view, row } = found
    if (rowCount === maxRows) {
      rowCount++
      return
    }
    facts.add(
      view.getUint32(row + COLUMNS_AT.flags, true),
      view.getUint8(row + COLUMNS_AT.kind),
      view.getUint8(row + COLUMNS_AT.statusCode),
      names.indexOf(bytes, found.nameStart, found.nameEnd),
      services.indexOf(bytes, found.serviceStart, found.serviceEnd),
    )
    arrivals.add(found)
    skeleton.add(view, row, 0, false, rowCount++)
  }
  await selectTraceColumns(client, key, maxRows + 1, add, signal)
  if (skeleton.size === 0) return undefined
  const columns = { skeleton, facts, names: names.texts(), services: services.texts(), arrivals }
  return { ...columns, arranged: skeleton.arrange(), truncated: rowCount > maxRows }
}

/** Returns truncated columns with the end and the arrivals of the whole trace. Its start is theirs: they have the first spans. */
export async function withWholeExtent(
  client: ClickHouseClient,
  key: TraceKey,
  columns: TraceColumns,
  signal: AbortSignal,
): Promise<TraceColumns> {
  const [endedAtUnixNano, arrivals = columns.arrivals] = await Promise.all([
    selectTraceEnd(client, key, signal),
    selectTraceArrivals(client, key, signal),
  ])
  return { ...columns, arranged: { ...columns.arranged, endedAtUnixNano }, arrivals }
}

/** The arrivals of the rows that were added. */
class GrowingArrivals implements TraceArrivals {
  firstMs = Number.POSITIVE_INFINITY
  lastMs = 0
  readonly #surfaceIds = new Set<string>()
  #latest = ''

  get surfaceIds(): readonly string[] {
    return [...this.#surfaceIds]
  }

  add({ bytes, view, row, surfaceStart, surfaceEnd }: ColumnsRow): void {
    const at = row + SPAN_AT.receivedAt
    const receivedMs = view.getUint32(at + 4, true) * 2 ** 32 + view.getUint32(at, true)
    if (receivedMs < this.firstMs) this.firstMs = receivedMs
    if (receivedMs > this.lastMs) this.lastMs = receivedMs
    const surfaceId = bytes.toString('latin1', surfaceStart, surfaceEnd)
    if (surfaceId === this.#latest) return
    this.#latest = surfaceId
    if (this.#surfaceIds.size < MOST_SURFACES) this.#surfaceIds.add(surfaceId)
  }
}

/** Columns that grow with each row. */
class GrowingFacts implements SpanFacts {
  #size = 0
  flags = new Uint32Array(FIRST_CAPACITY)
  kinds = new Uint8Array(FIRST_CAPACITY)
  statuses = new Uint8Array(FIRST_CAPACITY)
  names = new Int32Array(FIRST_CAPACITY)
  services = new Int32Array(FIRST_CAPACITY)

  add(flags: number, kind: number, status: number, name: number, service: number): void {
    if (this.#size === this.flags.length) this.#grow()
    const row = this.#size++
    this.flags[row] = flags
    this.kinds[row] = kind
    this.statuses[row] = status
    this.names[row] = name
    this.services[row] = service
  }

  #grow(): void {
    this.flags = new Uint32Array(doubled(this.flags))
    this.kinds = new Uint8Array(doubled(this.kinds))
    this.statuses = new Uint8Array(doubled(this.statuses))
    this.names = new Int32Array(doubled(this.names))
    this.services = new Int32Array(doubled(this.services))
  }
}
