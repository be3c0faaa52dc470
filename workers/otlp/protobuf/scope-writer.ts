import type { ScopeColumns } from '../../../clickhouse/tables/scope-columns.ts'
import { OriginWriter } from './origin-writer.ts'
import type { PayloadSource } from './refusal.ts'
import { type EmbeddedMessage, ResourceCache, type ResourceEntry, type ScopeEntry } from './resource-cache.ts'

/** Fills the columns that are equal for all records of a scope, in one run per scope instead of a value per record. */
export class ScopeWriter {
  private readonly columns: ScopeColumns
  private readonly cache: ResourceCache
  private readonly origins: OriginWriter
  private workspaceId = 0
  private surfaceId = 0
  private receivedAtLow = 0
  private receivedAtHigh = 0
  private resource: ResourceEntry | undefined
  private resourceSchemaUrl = 0
  private scope: ScopeEntry | undefined
  private scopeSchemaUrl = 0

  constructor(columns: ScopeColumns) {
    this.columns = columns
    this.cache = new ResourceCache(columns)
    this.origins = new OriginWriter(columns)
  }

  /** Forgets the cached dictionary indexes. Must be called after the columns were rewound or reset. */
  clearCache(): void {
    this.cache.clear()
    this.origins.clear()
  }

  /** Sets workspace, surface and arrival of the records that follow. */
  beginPayload(source: PayloadSource): void {
    this.workspaceId = this.columns.workspaceId.indexOf(source.workspaceId)
    this.surfaceId = this.columns.surfaceId.indexOf(source.surfaceId)
    this.receivedAtLow = source.receivedAtMs % 0x1_0000_0000
    this.receivedAtHigh = Math.floor(source.receivedAtMs / 0x1_0000_0000)
  }

  /** Sets the resource of the records that follow, and returns it. */
  beginResource(message: EmbeddedMessage, schemaUrl: string): ResourceEntry {
    this.resource = this.cache.resource(message)
    this.resourceSchemaUrl = this.columns.resourceSchemaUrl.indexOf(schemaUrl)
    return this.resource
  }

  /** Sets the scope of the records that follow, and returns it. */
  beginScope(message: EmbeddedMessage, schemaUrl: string): ScopeEntry {
    this.scope = this.cache.scope(message)
    this.scopeSchemaUrl = this.columns.scopeSchemaUrl.indexOf(schemaUrl)
    return this.scope
  }

  /** Appends the columns of the next `count` records. */
  fill(count: number): void {
    const { columns, resource, scope } = this
    if (count === 0 || resource === undefined || scope === undefined) return
    columns.workspaceId.fill(this.workspaceId, count)
    columns.surfaceId.fill(this.surfaceId, count)
    columns.receivedAt.fillU64(this.receivedAtLow, this.receivedAtHigh, count)
    columns.serviceName.fill(resource.serviceName, count)
    const { resourceSchemaUrl, scopeSchemaUrl } = this
    columns.origin.fill(this.origins.indexOf({ resource, resourceSchemaUrl, scope, scopeSchemaUrl }), count)
  }
}
