import type { ScopeRow } from './scope-columns.ts'

/** Returns resource and scope of a row from its column `origin`, as workers/otlp/protobuf/origin-writer.ts writes it. */
export function readOrigin(serviceName: string, origin: string): ScopeRow & { readonly serviceVersion: string } {
  const lines = origin.split('\n')
  const line = (number: number) => lines[number] ?? ''
  const text = (number: number) => (line(number) === '' ? '' : String(JSON.parse(line(number))))
  return {
    serviceName,
    serviceVersion: text(0),
    resourceJson: line(1),
    resourceDroppedAttributesCount: Number(line(2)),
    resourceSchemaUrl: text(3),
    scopeName: text(4),
    scopeVersion: text(5),
    scopeAttributes: line(6),
    scopeSchemaUrl: text(7),
    scopeDroppedAttributesCount: Number(line(8)),
  }
}

/** Column of the version of the service, which ClickHouse cuts out of the origin once for each different one. */
export const SERVICE_VERSION = `JSONExtractString(concat('[', extract(origin, '^[^\\n]*'), ']'), 1)`
const attributeOfResource = (key: string) => `JSONExtractString(extract(origin, '^[^\\n]*\\n([^\\n]*)'), '${key}')`
const [STABLE, FORMER] = ['deployment.environment.name', 'deployment.environment'].map(attributeOfResource)
/** Column of the environment of the service, by its current name or the former one. */
export const ENVIRONMENT = `if(${STABLE} != '', ${STABLE}, ${FORMER})`
