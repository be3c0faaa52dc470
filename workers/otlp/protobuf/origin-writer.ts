import type { OriginColumns } from '../../../clickhouse/tables/origin-columns.ts'
import type { PayloadOrigin } from './refusal.ts'
import { type EmbeddedMessage, ResourceCache, type ResourceEntry, type ScopeEntry } from './resource-cache.ts'

/** Fills the columns that are the same for all records of a scope, in one run per scope instead of a value per record. */
export class OriginWriter {
  private readonly columns: OriginColumns
  private readonly cache: ResourceCache
  private workspaceId = 0
  private surfaceId = 0
  private receivedAtLow = 0
  private receivedAtHigh = 0
  private resource: ResourceEntry | undefined
  private resourceSchemaUrl = 0
  private scope: ScopeEntry | undefined
  private scopeSchemaUrl = 0

  constructor(columns: OriginColumns) {
    this.columns = columns
    this.cache = new ResourceCache(columns)
  }

  /** After a rewind or reset of the columns: the indexes that were known are no longer there. */
  clearCache(): void {
    this.cache.clear()
  }

  beginPayload(frame: PayloadOrigin): void {
    this.workspaceId = this.columns.workspaceId.indexOf(frame.workspaceId)
    this.surfaceId = this.columns.surfaceId.indexOf(frame.surfaceId)
    this.receivedAtLow = frame.receivedAtMs % 0x1_0000_0000
    this.receivedAtHigh = Math.floor(frame.receivedAtMs / 0x1_0000_0000)
  }

  beginResource(message: EmbeddedMessage, schemaUrl: string): ResourceEntry {
    this.resource = this.cache.resource(message)
    this.resourceSchemaUrl = this.columns.resourceSchemaUrl.indexOf(schemaUrl)
    return this.resource
  }

  beginScope(message: EmbeddedMessage, schemaUrl: string): ScopeEntry {
    this.scope = this.cache.scope(message)
    this.scopeSchemaUrl = this.columns.scopeSchemaUrl.indexOf(schemaUrl)
    return this.scope
  }

  /** The origin of the `count` records that follow those already there. */
  fill(count: number): void {
    const { columns, resource, scope } = this
    if (count === 0 || resource === undefined || scope === undefined) return
    columns.workspaceId.fill(this.workspaceId, count)
    columns.surfaceId.fill(this.surfaceId, count)
    columns.receivedAt.fillU64(this.receivedAtLow, this.receivedAtHigh, count)
    columns.serviceName.fill(resource.serviceName, count)
    columns.serviceVersion.fill(resource.serviceVersion, count)
    columns.resource.fill(resource.resource, count)
    columns.resourceDroppedAttributesCount.fillU32(resource.droppedAttributesCount, count)
    columns.resourceSchemaUrl.fill(this.resourceSchemaUrl, count)
    columns.scopeName.fill(scope.name, count)
    columns.scopeVersion.fill(scope.version, count)
    columns.scopeAttributes.fill(scope.attributes, count)
    columns.scopeSchemaUrl.fill(this.scopeSchemaUrl, count)
    columns.scopeDroppedAttributesCount.fillU32(scope.droppedAttributesCount, count)
  }
}
