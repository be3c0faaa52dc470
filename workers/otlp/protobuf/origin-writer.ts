import type { LowCardinality } from '../../../clickhouse/native/low-cardinality.ts'
import type { ScopeColumns } from '../../../clickhouse/tables/scope-columns.ts'
import type { ResourceEntry, ScopeEntry } from './resource-cache.ts'

/** Resource and scope of records, with the dictionary indexes of their schemas. */
interface Origin {
  readonly resource: ResourceEntry
  readonly resourceSchemaUrl: number
  readonly scope: ScopeEntry
  readonly scopeSchemaUrl: number
}

/**
 * Writes resource and scope as one text, once for each pair of a batch: nine lines of JSON, read by `readOrigin`
 * (clickhouse/queries/attributes/origin.ts). JSON has no line break within a text.
 */
export class OriginWriter {
  readonly #columns: ScopeColumns
  readonly #known = new Map<string, number>()
  #latest: Origin | undefined
  #latestIndex = 0

  constructor(columns: ScopeColumns) {
    this.#columns = columns
  }

  /** Forgets all indexes. Must be called whenever the dictionaries lose keys. */
  clear(): void {
    this.#known.clear()
    this.#latest = undefined
  }

  /** Returns the index of the origin in the dictionary of the column. */
  indexOf(origin: Origin): number {
    const { resource, resourceSchemaUrl, scope, scopeSchemaUrl } = origin
    const latest = this.#latest
    const isLatest = latest?.resource === resource && latest.scope === scope
    if (isLatest && latest.resourceSchemaUrl === resourceSchemaUrl && latest.scopeSchemaUrl === scopeSchemaUrl) {
      return this.#latestIndex
    }
    const ofResource = `${resource.serviceVersion} ${resource.resource} ${resource.droppedAttributesCount} ${resourceSchemaUrl}`
    const ofScope = `${scope.name} ${scope.version} ${scope.attributes} ${scope.droppedAttributesCount} ${scopeSchemaUrl}`
    const key = `${ofResource} ${ofScope}`
    const index = this.#known.get(key) ?? this.#write(origin)
    this.#known.set(key, index)
    this.#latest = origin
    this.#latestIndex = index
    return index
  }

  #write({ resource, resourceSchemaUrl, scope, scopeSchemaUrl }: Origin): number {
    const columns = this.#columns
    const { dictionary } = columns.origin
    dictionary.beginKey()
    this.#text(columns.serviceVersion, resource.serviceVersion)
    this.#json(columns.resource, resource.resource)
    dictionary.keys.rawText(`\n${resource.droppedAttributesCount}\n`)
    this.#text(columns.resourceSchemaUrl, resourceSchemaUrl)
    this.#text(columns.scopeName, scope.name)
    this.#text(columns.scopeVersion, scope.version)
    this.#json(columns.scopeAttributes, scope.attributes)
    dictionary.keys.rawText('\n')
    this.#text(columns.scopeSchemaUrl, scopeSchemaUrl)
    dictionary.keys.rawText(String(scope.droppedAttributesCount))
    return dictionary.endKey()
  }

  /** Writes a short text as a line. */
  #text({ dictionary }: LowCardinality, index: number): void {
    this.#columns.origin.dictionary.keys.rawText(`${JSON.stringify(dictionary.textOf(index))}\n`)
  }

  /** Copies a text that is JSON. */
  #json({ dictionary }: LowCardinality, index: number): void {
    const { keys } = dictionary
    this.#columns.origin.dictionary.keys.raw(
      keys.bytes,
      keys.view,
      dictionary.bytesOf(index),
      dictionary.startOf(index + 1),
    )
  }
}
