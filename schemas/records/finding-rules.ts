import { z } from 'zod'

/** The most rules of a workspace. */
export const FINDING_RULES_MAX = 100
/** The most characters of a pattern, a fingerprint, a title or a name. */
export const FINDING_RULE_CHARACTERS = 200
/** The greatest revision: as many as fit into the rank of a membership (clickhouse/tables/finding-moves-table.ts). */
export const REVISION_MAX = 2 ** 30 - 1

// Characters may have two UTF-16 units.
const text = z
  .string()
  .min(1)
  .max(2 * FINDING_RULE_CHARACTERS)

/**
 * A rule: the exceptions that match all of its patterns belong to the finding of its fingerprint, and to no other. Without a
 * fingerprint, it only gives a title.
 */
const findingRuleSchema = z.object({
  name: text,
  /** Patterns: `*` matches any text, everything else itself. */
  type: text.optional(),
  message: text.optional(),
  file: text.optional(),
  service: text.optional(),
  fingerprint: text.optional(),
  title: text.optional(),
})
/** A rule of grouping. */
export type FindingRule = z.infer<typeof findingRuleSchema>

/** Record of the rules of a workspace, the first match of which decides. */
export const findingRulesSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  /**
   * Grows with each change. It is at least the number of seconds since 2026, so that a restored directory does not count again
   * from where its backup was.
   */
  revision: z.int().min(1).max(REVISION_MAX),
  changedAt: z.iso.datetime(),
  rules: z.array(findingRuleSchema).max(FINDING_RULES_MAX),
})
/** Record of the rules of a workspace. */
export type FindingRules = z.infer<typeof findingRulesSchema>
