import { GrowingBuffer } from '../native/growing-buffer.ts'
import { LowCardinality } from '../native/low-cardinality.ts'
import { column, TableBuffer } from '../native/table-buffer.ts'

/** Bits of a rank: that source maps resolved a frame, the sequence of the latest known manifest, the revision of the rules. */
const RESOLVED_BIT = 63n
const SEQUENCE_BIT = 30n
/** A sequence is microseconds since 1970 (accept-completion.lua), 51 bits until 2041. In steps of 0.26 s it has 33. */
const SEQUENCE_STEP_BITS = 18n

/**
 * Returns the rank of a decision: one that resolved a frame is above one that did not, then one that knew later maps, then one
 * by later rules.
 */
export function rankOf(resolvedFrameCount: number, sequence: number, revision = 0): bigint {
  const isResolved = resolvedFrameCount > 0 ? 1n : 0n
  const steps = BigInt(sequence) >> SEQUENCE_STEP_BITS
  return (isResolved << RESOLVED_BIT) + (steps << SEQUENCE_BIT) + BigInt(revision)
}

/** Returns the revision of the rules that a rank has. */
export function revisionOf(rank: bigint): number {
  return Number(rank & ((1n << SEQUENCE_BIT) - 1n))
}

/** A row of `finding_variants`, which states the finding of a variant. */
export interface FindingMove {
  readonly workspaceId: string
  /** 16 bytes as hexadecimal digits. */
  readonly variantId: string
  readonly findingId: string
  readonly rank: bigint
  /** The frame that lists show, as source maps have resolved it (`topFrameOf`). */
  readonly topFrame?: string
}

/** The column buffers of `finding_variants`. */
export class FindingMovesTable {
  readonly #workspaceId = new LowCardinality()
  readonly #variantId = new GrowingBuffer()
  readonly #rank = new GrowingBuffer()
  readonly #findingId = new GrowingBuffer()
  readonly #idOffsets = new GrowingBuffer()
  readonly #ids = new GrowingBuffer()
  readonly #frameRank = new GrowingBuffer()
  readonly #topFrame = new GrowingBuffer()

  readonly buffer = new TableBuffer('finding_variants', [
    column('workspace_id', 'LowCardinality(String)', this.#workspaceId),
    column('variant_id', 'FixedString(16)', this.#variantId),
    column('membership', 'Tuple(rank UInt64, finding_id FixedString(30))', this.#rank, this.#findingId),
    column('finding_ids', 'Array(FixedString(30))', this.#idOffsets, this.#ids),
    column('top_frame', 'Tuple(rank UInt64, text String)', this.#frameRank, this.#topFrame),
  ])

  /** Appends a row. */
  append({ workspaceId, variantId, findingId, rank, topFrame = '' }: FindingMove): void {
    this.buffer.rows++
    this.#workspaceId.fill(this.#workspaceId.indexOf(workspaceId), 1)
    this.#variantId.rawBytes(Buffer.from(variantId, 'hex'))
    appendRank(this.#rank, rank)
    this.#findingId.rawText(findingId)
    this.#ids.rawText(findingId)
    this.#idOffsets.u64(this.buffer.rows, 0)
    appendRank(this.#frameRank, topFrame === '' ? 0n : rank)
    this.#topFrame.text(topFrame)
  }
}

function appendRank(column: GrowingBuffer, rank: bigint): void {
  column.u64(Number(rank & 0xffff_ffffn), Number((rank >> 32n) & 0xffff_ffffn))
}
