import type { Scrubber } from '../../shared/scrubbing/scrubber.ts'
import type { RowBatch } from '../sink/row-batch.ts'
import { WorkspaceRules, withRules } from '../sink/workspace-rules.ts'
import type { KnownScrubbing } from './known-scrubbing.ts'

/** Rows whose values are scrubbed as they are decoded. */
interface ScrubbedRows {
  scrubberOf: ((workspaceId: string) => Scrubber | undefined) | undefined
}

/**
 * Makes `decoder` scrub by the rules of each workspace, and returns the batch that it fills. The revisions of the rules are in the
 * record of the batch, so that a repetition makes the same bytes.
 */
export function scrubbed(batch: RowBatch, decoder: ScrubbedRows, known: KnownScrubbing): RowBatch {
  const rules = new WorkspaceRules(known)
  decoder.scrubberOf = workspaceId => rules.of(workspaceId)
  return withRules(batch, { scrubbing: rules })
}
