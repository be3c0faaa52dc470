import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** A row of `session_identities`: absent values are empty texts. */
interface SessionIdentityRow {
  readonly workspaceId: string
  readonly surfaceId: string
  readonly sessionId: string
  readonly receivedAtMs: number
  readonly identifier: string
  readonly sourceType: string
  readonly sourceName: string
  readonly deviceId: string
  readonly visitorId: string
  readonly fpHash: string
  readonly avatar: string
  readonly email: string
  readonly name: string
  readonly country: string
  /** A JSON object as text. */
  readonly traits: string
}

/** The column buffers of the table `session_identities`. */
export class SessionIdentitiesTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #sessionId = new GrowingBuffer()
  readonly #receivedAt = new GrowingBuffer()
  readonly #identifier = new GrowingBuffer()
  readonly #sourceType = new LowCardinality()
  readonly #sourceName = new GrowingBuffer()
  readonly #deviceId = new GrowingBuffer()
  readonly #visitorId = new GrowingBuffer()
  readonly #fpHash = new GrowingBuffer()
  readonly #avatar = new GrowingBuffer()
  readonly #email = new GrowingBuffer()
  readonly #name = new GrowingBuffer()
  readonly #country = new LowCardinality()
  readonly #traits = new GrowingBuffer()

  readonly buffer = new TableBuffer('session_identities', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('session_id', 'String', this.#sessionId),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('identifier', 'String', this.#identifier),
    column('source_type', 'LowCardinality(String)', this.#sourceType),
    column('source_name', 'String', this.#sourceName),
    column('device_id', 'String', this.#deviceId),
    column('visitor_id', 'String', this.#visitorId),
    column('fp_hash', 'String', this.#fpHash),
    column('avatar', 'String', this.#avatar),
    column('email', 'String', this.#email),
    column('name', 'String', this.#name),
    column('country', 'LowCardinality(String)', this.#country),
    column('traits', 'String', this.#traits),
  ])

  /** Appends a row. */
  append(row: SessionIdentityRow): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(row.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(row.surfaceId), 1)
    this.#sessionId.text(row.sessionId)
    this.#receivedAt.integer64(row.receivedAtMs)
    this.#identifier.text(row.identifier)
    this.#sourceType.fill(this.#sourceType.indexOf(row.sourceType), 1)
    this.#sourceName.text(row.sourceName)
    this.#deviceId.text(row.deviceId)
    this.#visitorId.text(row.visitorId)
    this.#fpHash.text(row.fpHash)
    this.#avatar.text(row.avatar)
    this.#email.text(row.email)
    this.#name.text(row.name)
    this.#country.fill(this.#country.indexOf(row.country), 1)
    this.#traits.text(row.traits)
    this.buffer.rows++
  }
}
