import type { MetricPointsTable } from '../../../clickhouse/tables/metric-points-table.ts'
import { MIB } from '../../../schemas/units.ts'
import { BytesCache } from '../protobuf/bytes-cache.ts'
import { cutString, TEXT_LIMITS } from '../protobuf/cut-text.ts'
import { JsonAttributes } from '../protobuf/json-attributes.ts'
import type { EmbeddedMessage } from '../protobuf/resource-cache.ts'
import { Hash64 } from './series-id.ts'

/** Limit of the cached raw bytes. A batch with more metrics converts some of them again. */
const CACHE_LIMIT_BYTES = 8 * MIB

/** The fields of a Metric except its data, as dictionary indexes, and a hash of its identity. */
export interface MetricHeader {
  name: number
  description: number
  unit: number
  metadata: number
  identity: { low: number; high: number }
}

/** Converts the name, description, unit and metadata of a Metric once per distinct bytes in a batch. */
export class MetricHeaders {
  private readonly columns: MetricPointsTable['metric']
  private readonly headers = new BytesCache<MetricHeader>(CACHE_LIMIT_BYTES)

  constructor(columns: MetricPointsTable['metric']) {
    this.columns = columns
  }

  /** Forgets all headers. Must be called whenever the dictionaries lose keys. */
  clear(): void {
    this.headers.clear()
  }

  /** Returns the header of the fields of a Metric without its data. */
  of(fields: EmbeddedMessage): MetricHeader {
    const { bytes, view } = fields.cursor()
    const known = this.headers.get(view, fields.start, fields.end)
    if (known !== undefined) return known
    const header = this.convert(fields)
    this.headers.set(bytes, view, fields.start, fields.end, header)
    return header
  }

  /** Metric: `string name = 1; string description = 2; string unit = 3; repeated KeyValue metadata = 12`. */
  private convert(fields: EmbeddedMessage): MetricHeader {
    const wire = fields.cursor()
    const end = fields.end
    const metadata = new JsonAttributes()
    let name = ''
    let description = ''
    let unit = ''
    for (let pos = fields.start; pos < end; ) {
      const tag = wire.readField(pos, end)
      pos = wire.next
      if (tag === 0x0a) name = wire.bytes.toString('utf8', wire.start, pos)
      else if (tag === 0x12) description = wire.bytes.toString('utf8', wire.start, pos)
      else if (tag === 0x1a) unit = wire.bytes.toString('utf8', wire.start, pos)
      else if (tag === 0x62) metadata.add(wire, wire.start, pos)
    }
    const hash = new Hash64()
    hash.begin()
    hash.text(name)
    hash.text(unit)
    hash.finish()
    return {
      name: this.columns.name.indexOf(cutString(name, TEXT_LIMITS.metricName)),
      description: this.columns.description.indexOf(description),
      unit: this.columns.unit.indexOf(unit),
      metadata: metadata.indexIn(this.columns.metadata),
      identity: { low: hash.low, high: hash.high },
    }
  }
}
