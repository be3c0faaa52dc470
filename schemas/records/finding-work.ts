import { z } from 'zod'
import { userIdSchema } from './directory.ts'

/** The most versions that a resolution remembers. */
export const KNOWN_VERSIONS_MAX = 50
/** The most occurrences after which an ignored finding can be open again. */
export const IGNORED_OCCURRENCES_MAX = 1_000_000_000

/** The most findings that are merged into one. */
export const MERGED_MAX = 1_000

const instant = z.iso.datetime()
const findingId = z.string().regex(/^fnd_[a-z2-7]{26}$/)

/**
 * Record of what members have made of a finding. Its status is the one that they chose. The one that responses show follows from
 * it and from what has occurred since (`findings/standing.ts`).
 */
export const findingWorkSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  findingId,
  status: z.enum(['open', 'resolved', 'ignored']),
  /** When a member chose the status; null if none did. */
  statusAt: instant.nullable(),
  /** The member who works on the finding. */
  assignee: userIdSchema.nullable(),
  /** Present if resolved: digests of the versions in which the finding had occurred. */
  knownVersions: z.array(z.string()).max(KNOWN_VERSIONS_MAX).optional(),
  /** Present if ignored for a time. */
  until: instant.optional(),
  /** Present if ignored until it has occurred again: the number of occurrences. */
  occurrences: z.int().min(1).max(IGNORED_OCCURRENCES_MAX).optional(),
  /** Number of occurrences that had arrived on the day of `statusAt` (UTC) before it. They do not count as occurring again. */
  countedBefore: z.int().min(0).optional(),
  /** Present if it is merged: the finding that it is merged into, which is not merged itself. */
  mergedInto: findingId.optional(),
  /** Present if it was merged and split again: the finding that it was split from. */
  splitFrom: findingId.optional(),
  /** UTF-8 bytes of the entries of its activity. */
  activityBytes: z.int().min(0),
  changedAt: instant,
})
/** Record of what members have made of a finding. */
export type FindingWork = z.infer<typeof findingWorkSchema>
