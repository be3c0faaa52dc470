import type { LowCardinality } from '../../../clickhouse/native/low-cardinality.ts'
import type { ScopeColumns } from '../../../clickhouse/tables/scope-columns.ts'
import type { PayloadSource } from '../protobuf/refusal.ts'
import type { ResourceEntry, ScopeEntry } from '../protobuf/resource-cache.ts'
import { Hash64 } from './series-id.ts'

/** Hashes what a metric belongs to: workspace, surface, resource and scope. Each cache entry is hashed once. */
export class SeriesScope {
  private readonly columns: ScopeColumns
  private readonly resources = new WeakMap<ResourceEntry, Hash64>()
  private readonly scopes = new WeakMap<ScopeEntry, Hash64>()
  private readonly surface = new Hash64()
  private readonly identity = new Hash64()
  private resource = new Hash64()

  constructor(columns: ScopeColumns) {
    this.columns = columns
  }

  beginPayload(source: PayloadSource): void {
    this.surface.begin()
    this.surface.text(source.workspaceId)
    this.surface.text(source.surfaceId)
  }

  beginResource(entry: ResourceEntry): void {
    const known = this.resources.get(entry)
    this.resource = known ?? this.hashResource(entry)
    if (known === undefined) this.resources.set(entry, this.resource)
  }

  /** Returns the hash of a scope in the current resource and payload. It is valid until the next call. */
  identityOf(entry: ScopeEntry): Hash64 {
    const known = this.scopes.get(entry)
    const scope = known ?? this.hashScope(entry)
    if (known === undefined) this.scopes.set(entry, scope)
    const { identity } = this
    identity.begin()
    identity.hash(this.surface)
    identity.hash(this.resource)
    identity.hash(scope)
    return identity
  }

  private hashResource(entry: ResourceEntry): Hash64 {
    const hash = new Hash64()
    hash.begin()
    addKey(hash, this.columns.resource, entry.resource)
    return hash
  }

  private hashScope(entry: ScopeEntry): Hash64 {
    const { scopeName, scopeVersion, scopeAttributes } = this.columns
    const hash = new Hash64()
    hash.begin()
    addKey(hash, scopeName, entry.name)
    addKey(hash, scopeVersion, entry.version)
    addKey(hash, scopeAttributes, entry.attributes)
    return hash
  }
}

/** Adds the value of a column that has this index, with its length. */
function addKey(hash: Hash64, { dictionary }: LowCardinality, index: number): void {
  hash.bytes(dictionary.keys.view, dictionary.startOf(index), dictionary.startOf(index + 1))
}
