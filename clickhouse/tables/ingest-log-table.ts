import { COMMIT_BYTES } from '../../shared/ids/receipt.ts'
import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** A request that was refused and is not stored. */
interface RefusedRequest {
  /** Index of the request in its group commit. */
  readonly index: number
  readonly reason: string
  /** Key of the object with the dead letter; empty if there is none. */
  readonly objectKey: string
}

/** Records of one request that are left out for one reason. */
interface RejectedRecords {
  /** Index of the request in its group commit. */
  readonly index: number
  readonly reason: string
  readonly records: number
  /** Key of the object with the dead letter; empty if there is none. */
  readonly objectKey: string
}

/** A request that a page has numbered. */
interface LoggedPageRequest {
  /** 16 bytes (`sessionHash`). */
  readonly sessionHash: Uint8Array
  readonly page: string
  readonly sequence: number
}

/** A row of `ingest_log`: the outcome of the requests of one job and surface. */
export interface IngestLogEntry {
  readonly workspaceId: string
  readonly surfaceId: string
  /** Arrival of the first request. */
  receivedAtMs: number
  /** When the requests were replayed from their dead letters; 0 for requests as clients sent them. */
  readonly replayedAtMs: number
  readonly jobId: string
  readonly signal: string
  payloads: number
  /** Number of bytes as they were sent. */
  bytes: number
  rows: number
  /** Number of rows in other tables than that of the records. */
  derivedRows: number
  /** Number of records left out, by reason. */
  readonly rejected: Map<string, number>
  /** Number of values that scrubbing replaced, by the name of the rule. */
  readonly scrubbed: Map<string, number>
  /** Number of records that rules dropped, by the name of the rule. */
  readonly dropped: Map<string, number>
  /** The hash of the trace of each dropped span, by the name of the rule. Further ones than a bound are left out. */
  readonly droppedSpans: Map<string, number[]>
  /** Number of dead letters that are kept, by reason. */
  readonly deadLettered: Map<string, number>
  /** Number of dead letters over the bound of their surface and day, which are not kept, by reason. */
  readonly discarded: Map<string, number>
  /** Id of the group commit that the receipts name, in latin1; empty if the requests have no receipts. */
  readonly commit: string
  /** Indexes of the requests in the group commit. */
  readonly indexes: number[]
  /** The requests that are not stored. */
  readonly refused: RefusedRequest[]
  /** Indexes of the requests whose dead letters are not kept. */
  readonly discardedIndexes: number[]
  /** The records that are left out, by request. */
  readonly rejections: RejectedRecords[]
  /** The requests that pages have numbered, without repeated ones. */
  readonly pageRequests: LoggedPageRequest[]
}

/** The column buffers of the table `ingest_log`. */
export class IngestLogTable {
  readonly #workspaceId = new LowCardinality()
  readonly #surfaceId = new LowCardinality()
  readonly #receivedAt = new GrowingBuffer()
  readonly #replayedAt = new GrowingBuffer()
  readonly #jobId = new GrowingBuffer()
  readonly #signal = new LowCardinality()
  readonly #payloads = new GrowingBuffer()
  readonly #bytes = new GrowingBuffer()
  readonly #rows = new GrowingBuffer()
  readonly #derivedRows = new GrowingBuffer()
  readonly #rejected = new CountsColumn()
  readonly #scrubbed = new CountsColumn()
  readonly #dropped = new CountsColumn()
  readonly #droppedSpans = new HashesColumn()
  readonly #deadLettered = new CountsColumn()
  readonly #commit = new GrowingBuffer()
  readonly #indexes = new IndexesColumn()
  readonly #refused = new RefusedColumn()
  readonly #discarded = new CountsColumn()
  readonly #discardedIndexes = new IndexesColumn()
  readonly #rejections = new RejectionsColumn()
  readonly #pageRequests = new PageRequestsColumn()

  readonly buffer = new TableBuffer('ingest_log', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('surface_id', 'LowCardinality(String)', this.#surfaceId),
    column('received_at', "DateTime64(3, 'UTC')", this.#receivedAt),
    column('replayed_at', "DateTime64(3, 'UTC')", this.#replayedAt),
    column('job_id', 'String', this.#jobId),
    column('signal', 'LowCardinality(String)', this.#signal),
    column('payloads', 'UInt32', this.#payloads),
    column('bytes', 'UInt64', this.#bytes),
    column('rows', 'UInt64', this.#rows),
    column('derived_rows', 'UInt64', this.#derivedRows),
    column('rejected', 'Map(String, UInt64)', ...this.#rejected.parts),
    column('scrubbed', 'Map(String, UInt64)', ...this.#scrubbed.parts),
    column('dropped', 'Map(String, UInt64)', ...this.#dropped.parts),
    column('dropped_spans', 'Map(String, Array(UInt32))', ...this.#droppedSpans.parts),
    column('dead_lettered', 'Map(String, UInt64)', ...this.#deadLettered.parts),
    column('receipt_commit', 'FixedString(12)', this.#commit),
    column('receipt_indexes', 'Array(UInt32)', ...this.#indexes.parts),
    column('refused', 'Array(Tuple(index UInt32, reason String, object_key String))', ...this.#refused.parts),
    column('discarded', 'Map(String, UInt64)', ...this.#discarded.parts),
    column('discarded_indexes', 'Array(UInt32)', ...this.#discardedIndexes.parts),
    column(
      'rejections',
      'Array(Tuple(index UInt32, reason String, records UInt64, object_key String))',
      ...this.#rejections.parts,
    ),
    column(
      'page_requests',
      'Array(Tuple(session_hash FixedString(16), page_id String, sequence UInt32))',
      ...this.#pageRequests.parts,
    ),
  ])

  /** Appends a row. */
  append(entry: IngestLogEntry): void {
    this.#workspaceId.fill(this.#workspaceId.indexOf(entry.workspaceId), 1)
    this.#surfaceId.fill(this.#surfaceId.indexOf(entry.surfaceId), 1)
    this.#receivedAt.integer64(entry.receivedAtMs)
    this.#replayedAt.integer64(entry.replayedAtMs)
    this.#jobId.text(entry.jobId)
    this.#signal.fill(this.#signal.indexOf(entry.signal), 1)
    this.#payloads.u32(entry.payloads)
    this.#bytes.integer64(entry.bytes)
    this.#rows.integer64(entry.rows)
    this.#derivedRows.integer64(entry.derivedRows)
    this.#rejected.append(entry.rejected)
    this.#scrubbed.append(entry.scrubbed)
    this.#dropped.append(entry.dropped)
    this.#droppedSpans.append(entry.droppedSpans)
    this.#deadLettered.append(entry.deadLettered)
    appendCommit(this.#commit, entry.commit)
    this.#indexes.append(entry.indexes)
    this.#refused.append(entry.refused)
    this.#discarded.append(entry.discarded)
    this.#discardedIndexes.append(entry.discardedIndexes)
    this.#rejections.append(entry.rejections)
    this.#pageRequests.append(entry.pageRequests)
    this.buffer.rows++
  }
}

function appendCommit(buffer: GrowingBuffer, commit: string): void {
  if (commit === '') buffer.fillBytes(0, COMMIT_BYTES)
  else for (let i = 0; i < COMMIT_BYTES; i++) buffer.u8(commit.charCodeAt(i))
}

/** An Array(UInt32) column. */
class IndexesColumn {
  readonly parts = [new GrowingBuffer(), new GrowingBuffer()] as const

  /** Appends a row. */
  append(indexes: readonly number[]): void {
    const [offsets, values] = this.parts
    for (const index of indexes) values.u32(index)
    offsets.integer64(values.length / 4)
  }
}

/** An Array(Tuple(UInt32, String, String)) column. */
class RefusedColumn {
  readonly parts = [new GrowingBuffer(), new GrowingBuffer(), new GrowingBuffer(), new GrowingBuffer()] as const

  /** Appends a row. */
  append(requests: readonly RefusedRequest[]): void {
    const [offsets, indexes, reasons, objectKeys] = this.parts
    for (const { index, reason, objectKey } of requests) {
      indexes.u32(index)
      reasons.text(reason)
      objectKeys.text(objectKey)
    }
    offsets.integer64(indexes.length / 4)
  }
}

/** An Array(Tuple(FixedString(16), String, UInt32)) column. */
class PageRequestsColumn {
  readonly parts = [new GrowingBuffer(), new GrowingBuffer(), new GrowingBuffer(), new GrowingBuffer()] as const

  /** Appends a row. */
  append(requests: readonly LoggedPageRequest[]): void {
    const [offsets, sessions, pages, sequences] = this.parts
    for (const { sessionHash, page, sequence } of requests) {
      for (const byte of sessionHash) sessions.u8(byte)
      pages.text(page)
      sequences.u32(sequence)
    }
    offsets.integer64(sequences.length / 4)
  }
}

/** An Array(Tuple(UInt32, String, UInt64, String)) column. */
class RejectionsColumn {
  readonly parts = [
    new GrowingBuffer(),
    new GrowingBuffer(),
    new GrowingBuffer(),
    new GrowingBuffer(),
    new GrowingBuffer(),
  ] as const

  /** Appends a row. */
  append(rejections: readonly RejectedRecords[]): void {
    const [offsets, indexes, reasons, records, objectKeys] = this.parts
    for (const { index, reason, records: count, objectKey } of rejections) {
      indexes.u32(index)
      reasons.text(reason)
      records.integer64(count)
      objectKeys.text(objectKey)
    }
    offsets.integer64(indexes.length / 4)
  }
}

/** A Map(String, UInt64) column. */
class CountsColumn {
  readonly parts = [new GrowingBuffer(), new GrowingBuffer(), new GrowingBuffer()] as const

  /** Appends a row. */
  append(counts: ReadonlyMap<string, number>): void {
    const [offsets, keys, values] = this.parts
    for (const [key, count] of counts) {
      keys.text(key)
      values.integer64(count)
    }
    // The offset is read from the buffer instead of a counter, because the table can be reset and rewound.
    offsets.integer64(values.length / 8)
  }
}

/** A Map(String, Array(UInt32)) column. */
class HashesColumn {
  readonly parts = [new GrowingBuffer(), new GrowingBuffer(), new GrowingBuffer(), new GrowingBuffer()] as const

  /** Appends a row. */
  append(hashes: ReadonlyMap<string, readonly number[]>): void {
    const [offsets, keys, ends, values] = this.parts
    for (const [key, list] of hashes) {
      keys.text(key)
      for (const hash of list) values.u32(hash)
      ends.integer64(values.length / 4)
    }
    offsets.integer64(ends.length / 8)
  }
}
