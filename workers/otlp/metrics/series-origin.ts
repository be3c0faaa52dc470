import type { OriginColumns } from '../../../clickhouse/tables/origin-columns.ts'
import type { PayloadOrigin } from '../protobuf/refusal.ts'
import type { ResourceEntry, ScopeEntry } from '../protobuf/resource-cache.ts'
import { Hash64 } from './series-id.ts'

/** Tells where a metric comes from: workspace, surface, resource and scope, hashed once per entry of their caches. */
export class SeriesOrigin {
  private readonly columns: OriginColumns
  private readonly resources = new WeakMap<ResourceEntry, Hash64>()
  private readonly scopes = new WeakMap<ScopeEntry, Hash64>()
  private readonly surface = new Hash64()
  private readonly origin = new Hash64()
  private resource = new Hash64()

  constructor(columns: OriginColumns) {
    this.columns = columns
  }

  beginPayload(frame: PayloadOrigin): void {
    this.surface.begin()
    this.surface.text(frame.workspaceId)
    this.surface.text(frame.surfaceId)
  }

  beginResource(entry: ResourceEntry): void {
    const known = this.resources.get(entry)
    this.resource = known ?? this.hashResource(entry)
    if (known === undefined) this.resources.set(entry, this.resource)
  }

  /** The identity of the scope in the resource and payload begun last. Valid until the next call. */
  ofScope(entry: ScopeEntry): Hash64 {
    const known = this.scopes.get(entry)
    const scope = known ?? this.hashScope(entry)
    if (known === undefined) this.scopes.set(entry, scope)
    const { origin } = this
    origin.begin()
    origin.hash(this.surface)
    origin.hash(this.resource)
    origin.hash(scope)
    return origin
  }

  private hashResource(entry: ResourceEntry): Hash64 {
    const hash = new Hash64()
    hash.begin()
    hash.text(this.columns.resource.dictionary.textOf(entry.resource))
    return hash
  }

  private hashScope(entry: ScopeEntry): Hash64 {
    const { scopeName, scopeVersion, scopeAttributes } = this.columns
    const hash = new Hash64()
    hash.begin()
    hash.text(scopeName.dictionary.textOf(entry.name))
    hash.text(scopeVersion.dictionary.textOf(entry.version))
    hash.text(scopeAttributes.dictionary.textOf(entry.attributes))
    return hash
  }
}
