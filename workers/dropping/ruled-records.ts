import type { Scrubber } from '../../shared/scrubbing/scrubber.ts'
import type { OtlpBatch } from '../otlp/protobuf/otlp-batch.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { type KnownRules, WorkspaceRules, withRules } from '../sink/workspace-rules.ts'
import type { KnownDropping } from './known-dropping.ts'

/** The rules by which records are made into rows. */
interface RecordRules {
  readonly scrubbing: KnownRules<Scrubber>
  readonly dropping: KnownDropping
}

/**
 * Makes `decoder` scrub and drop by the rules of each workspace, and returns the batch that it fills. The revisions of the rules
 * are in the record of the batch, so that a repetition makes the same rows.
 */
export function ruledRecords(batch: RowBatch, decoder: OtlpBatch, known: RecordRules): RowBatch {
  const scrubbing = new WorkspaceRules(known.scrubbing)
  const dropping = new WorkspaceRules(known.dropping)
  decoder.scrubberOf = workspaceId => scrubbing.of(workspaceId)
  decoder.dropperOf = workspaceId => dropping.of(workspaceId)
  return withRules(batch, { scrubbing, dropping })
}
