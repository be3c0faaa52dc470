import { TYPES } from '../../../clickhouse/queries/attributes/attribute-columns.ts'
import { readOrigin } from '../../../clickhouse/queries/attributes/origin.ts'
import { readAttributes } from '../../../clickhouse/queries/attributes/packed-attributes.ts'
import { readSpanDetails } from '../../../clickhouse/queries/traces/read-span-details.ts'
import type { NativeValue } from './read-block.ts'
import { unpackPoint } from './unpack-point.ts'

type Row = Record<string, NativeValue>
type Attributes = ReturnType<typeof readAttributes>

/** Returns a row with the fields of its packed columns one by one. Texts have a character per byte. */
export function wholeRow({ origin, attribute_keys, attribute_values, ...rest }: Row): Row {
  const { details, ...row } = rest.exponential === undefined ? rest : unpackPoint(rest)
  return {
    ...row,
    ...(origin !== undefined && originFields(String(origin))),
    ...(attribute_keys !== undefined &&
      attributeFields(readAttributes(String(attribute_keys), String(attribute_values)))),
    ...(details !== undefined && detailFields(Buffer.from(String(details), 'latin1'))),
  }
}

function originFields(origin: string): Row {
  const read = readOrigin('', origin)
  return {
    service_version: read.serviceVersion,
    resource: read.resourceJson,
    resource_dropped_attributes_count: read.resourceDroppedAttributesCount,
    resource_schema_url: read.resourceSchemaUrl,
    scope_name: read.scopeName,
    scope_version: read.scopeVersion,
    scope_attributes: read.scopeAttributes,
    scope_schema_url: read.scopeSchemaUrl,
    scope_dropped_attributes_count: read.scopeDroppedAttributesCount,
  }
}

function attributeFields([keys, values, types]: Attributes): Row {
  return {
    attributes: keys.map((key, i): [NativeValue, NativeValue] => [key, values[i] as string]),
    attribute_types: types.map(type => TYPES.indexOf(type)),
  }
}

function detailFields(details: Buffer): Row {
  const read = readSpanDetails(details, 'latin1')
  return {
    trace_state: read.traceState,
    dropped_attributes_count: read.droppedAttributesCount,
    events: read.eventColumns.map(([time, name, attributes, dropped]) => ({
      ...{ time_unix_nano: BigInt(time), name, ...attributeFields(attributes) },
      dropped_attributes_count: dropped,
    })),
    dropped_events_count: read.droppedEventsCount,
    links: read.linkColumns.map(([traceId, spanId, traceState, flags, attributes, dropped]) => ({
      ...{ trace_id: latin1OfHex(traceId), span_id: latin1OfHex(spanId), trace_state: traceState, flags },
      ...{ ...attributeFields(attributes), dropped_attributes_count: dropped },
    })),
    dropped_links_count: read.droppedLinksCount,
  }
}

const latin1OfHex = (hex: string) => Buffer.from(hex, 'hex').toString('latin1')
