import { z } from 'zod'
import { REVISION_MAX } from './finding-rules.ts'

/** The most rules of a workspace. */
export const DROP_RULES_MAX = 50
/** The most services, names or attributes of a rule. */
export const DROP_CONDITIONS_MAX = 50
/** The most services, names and attributes of all rules of a workspace. */
export const ALL_DROP_CONDITIONS_MAX = 500
/** The most characters of a name, a service, a key or a value. */
export const DROP_CHARACTERS = 200

/** Signals whose records rules can drop. */
export const DROP_SIGNALS = ['traces', 'logs', 'metrics'] as const
/** A signal whose records rules can drop. */
export type DropSignal = (typeof DROP_SIGNALS)[number]

// Characters may have two UTF-16 units.
const text = z
  .string()
  .min(1)
  .max(2 * DROP_CHARACTERS)
const texts = z.array(text).min(1).max(DROP_CONDITIONS_MAX)

const dropRuleSchema = z.object({
  name: text,
  /** All of them if left out. */
  signals: z.array(z.enum(DROP_SIGNALS)).min(1).max(DROP_SIGNALS.length).optional(),
  /** Values of `service.name`, one of which matches. */
  services: texts.optional(),
  /** Names of spans and metrics, and event names of log records. One matches: as a whole, or the text before a `*` at its end. */
  names: texts.optional(),
  /** Attributes of the record or its resource, which all match: the key, and the value if there is one. */
  attributes: z
    .array(z.object({ key: text, value: text.optional() }))
    .min(1)
    .max(DROP_CONDITIONS_MAX)
    .optional(),
  /** Share of the matching traces that is stored nevertheless; 0 if left out. */
  keep: z.number().min(0).max(1).optional(),
})
/** A rule by which records are dropped: those that meet all of its conditions. */
export type DropRule = z.infer<typeof dropRuleSchema>

/** Record of the rules by which records of a workspace are dropped. The first rule that matches a record decides. */
export const droppingSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  /** As that of the rules of grouping. 0 is that of no rules, which have no record. */
  revision: z.int().min(1).max(REVISION_MAX),
  changedAt: z.iso.datetime(),
  rules: z.array(dropRuleSchema).max(DROP_RULES_MAX),
})
/** Record of the rules by which records of a workspace are dropped. */
export type Dropping = z.infer<typeof droppingSchema>
