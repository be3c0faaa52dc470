import { z } from 'zod'
import { REVISION_MAX } from './finding-rules.ts'

/** The most rules of a workspace. */
export const SCRUBBING_RULES_MAX = 100
/** The most keys of a rule. */
export const SCRUBBED_KEYS_MAX = 100
/** The most keys of all rules of a workspace. */
export const ALL_SCRUBBED_KEYS_MAX = 1_000
/** The most characters of a key or a name. */
export const SCRUBBING_CHARACTERS = 100

/**
 * Kinds of values that are found in texts. `card_number`: of a payment card, with its check digit. `jwt`: a JSON Web Token.
 * `email`: an e-mail address. `url_secret`: the password of a URL, and what follows the name of a secret and `=`.
 */
export const VALUE_KINDS = ['card_number', 'jwt', 'email', 'url_secret'] as const
/** A kind of values that are found in texts. */
export type ValueKind = (typeof VALUE_KINDS)[number]

/**
 * Texts besides attributes in which a pattern is looked for. `name`: of spans, events and metrics. `body`: of log records.
 * `status`: the message of the status of a span. `exception`: message and stack trace of exceptions.
 */
export const PATTERN_FIELDS = ['name', 'body', 'status', 'exception'] as const
/** A text besides attributes in which a pattern is looked for. */
export type PatternField = (typeof PATTERN_FIELDS)[number]
/** The most characters of a pattern. */
export const PATTERN_CHARACTERS = 500
/** The most rules of a workspace that have a pattern. */
export const PATTERNS_MAX = 20

/**
 * Actions on the value of a matching key. `mask`: it is replaced by a fixed text. `hash`: by a hash with a key of the workspace,
 * the same for the same value. `remove`: by nothing. `keep`: it stays, whatever later rules say.
 */
export const SCRUBBING_ACTIONS = ['mask', 'hash', 'remove', 'keep'] as const

// Characters may have two UTF-16 units.
const text = z
  .string()
  .min(1)
  .max(2 * SCRUBBING_CHARACTERS)

const scrubbingRuleSchema = z.object({
  name: text,
  /** Keys, each of one or several words. An attribute matches whose key ends with these words. */
  keys: z.array(text).min(1).max(SCRUBBED_KEYS_MAX).optional(),
  /** Kinds of values that are replaced wherever they are found. */
  values: z.array(z.enum(VALUE_KINDS)).min(1).max(VALUE_KINDS.length).optional(),
  /** An expression of RE2. Its matches in the values of the keys and in the fields are replaced. */
  pattern: z
    .string()
    .min(1)
    .max(2 * PATTERN_CHARACTERS)
    .optional(),
  fields: z.array(z.enum(PATTERN_FIELDS)).min(1).max(PATTERN_FIELDS.length).optional(),
  action: z.enum(SCRUBBING_ACTIONS),
})
/** A rule by which values are scrubbed. */
export type ScrubbingRule = z.infer<typeof scrubbingRuleSchema>

/** Record of the rules by which what a workspace receives is scrubbed, the first match of which decides. */
export const scrubbingSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  /** As that of the rules of grouping. 0 is that of the default rules, which have no record. */
  revision: z.int().min(1).max(REVISION_MAX),
  changedAt: z.iso.datetime(),
  rules: z.array(scrubbingRuleSchema).max(SCRUBBING_RULES_MAX),
})
/** Record of the rules by which what a workspace receives is scrubbed. */
export type Scrubbing = z.infer<typeof scrubbingSchema>

/** The rules of a workspace that has not chosen its own (docs/api/scrubbing.md). */
export const DEFAULT_SCRUBBING: readonly ScrubbingRule[] = [
  {
    name: 'credentials',
    keys: [
      ...['authorization', 'cookie', 'password', 'passwd', 'passphrase', 'secret', 'token', 'credential'],
      ...['api key', 'apikey', 'access key', 'private key', 'secret key', 'session key', 'secret access key'],
    ],
    action: 'mask',
  },
]
