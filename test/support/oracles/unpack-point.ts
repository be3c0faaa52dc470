import { TYPES } from '../../../clickhouse/queries/attributes/attribute-columns.ts'
import { DetailReader } from '../../../clickhouse/queries/traces/read-span-details.ts'
import { PointDetail } from '../../../clickhouse/tables/point-details.ts'
import type { Row } from './otlp-oracle.ts'
import type { NativeValue } from './read-block.ts'

/** Returns a row of `metric_points` with its packed columns as lists and numbers, in the terms of `expectedPoints`. */
export function unpackPoint({ bounds, counts, exponential, details, ...row }: Row): Row {
  const boundBytes = bytesOf(bounds)
  return {
    ...row,
    explicit_bounds: numbersOf(boundBytes, at => boundBytes.readDoubleLE(at)),
    bucket_counts: countsOf(bytesOf(counts)),
    ...exponentialOf(bytesOf(exponential)),
    ...detailsOf(bytesOf(details)),
  }
}

function exponentialOf(bytes: Buffer): Row {
  const header = bytes.length > 0 ? bytes : Buffer.alloc(24)
  const positiveEnd = 24 + 8 * header.readUInt32LE(12)
  return {
    scale: header.readInt32LE(0),
    positive_offset: header.readInt32LE(4),
    negative_offset: header.readInt32LE(8),
    zero_count: header.readBigUInt64LE(16),
    positive_bucket_counts: countsOf(bytes.subarray(24, positiveEnd)),
    negative_bucket_counts: countsOf(bytes.subarray(positiveEnd)),
  }
}

/** Reads the column `details` (clickhouse/tables/point-details.ts). */
export function detailsOf(bytes: Buffer): Row {
  const quantile_values: Row[] = []
  const exemplars: Row[] = []
  const row: Row = { min: null, max: null, zero_threshold: 0, quantile_values, exemplars }
  const reader = new DetailReader(bytes, 'latin1')
  const double = () => Buffer.from(new BigUint64Array([reader.u64()]).buffer).readDoubleLE()
  while (!reader.isAtEnd) {
    const entry = reader.u8()
    if (entry === PointDetail.min) row.min = double()
    else if (entry === PointDetail.max) row.max = double()
    else if (entry === PointDetail.zeroThreshold) row.zero_threshold = double()
    else if (entry === PointDetail.quantile) quantile_values.push({ quantile: double(), value: double() })
    else if (entry === PointDetail.exemplar) exemplars.push(exemplarOf(reader))
    else throw new RangeError(`an unknown entry ${entry}`)
  }
  return row
}

function exemplarOf(reader: DetailReader): Row {
  const type = reader.u8()
  const bits = Buffer.from(new BigUint64Array([reader.u64()]).buffer)
  const time_unix_nano = reader.u64()
  const ids = { span_id: reader.text(), trace_id: reader.text() }
  const [keys, values, types] = reader.attributes()
  return {
    ...{ time_unix_nano, value_type: type, as_int: type === 1 ? bits.readBigInt64LE() : 0n },
    as_double: type === 2 ? bits.readDoubleLE() : 0,
    ...ids,
    filtered_attributes: keys.map((key, i): [NativeValue, NativeValue] => [key, values[i] as string]),
    filtered_attribute_types: types.map(name => TYPES.indexOf(name)),
  }
}

const bytesOf = (value: NativeValue | undefined) => Buffer.from(value as string, 'latin1')
const countsOf = (bytes: Buffer) => numbersOf(bytes, at => bytes.readBigUInt64LE(at))

function numbersOf(bytes: Buffer, read: (at: number) => NativeValue): NativeValue[] {
  return Array.from({ length: bytes.length / 8 }, (_, i) => read(8 * i))
}
