import { z } from 'zod'
import { REVISION_MAX } from '../../records/finding-rules.ts'
import {
  ALL_SCRUBBED_KEYS_MAX,
  DEFAULT_SCRUBBING,
  PATTERN_CHARACTERS,
  PATTERN_FIELDS,
  PATTERNS_MAX,
  SCRUBBED_KEYS_MAX,
  SCRUBBING_ACTIONS,
  SCRUBBING_CHARACTERS,
  SCRUBBING_RULES_MAX,
  VALUE_KINDS,
} from '../../records/scrubbing.ts'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, listOf, textOf } from '../fields.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'

/** Size of the body with rules: all texts at their limit fit if they are ASCII. */
const RULES_BODY_BYTES = 256 * 1024
/** The most attributes on which rules are tried. */
const TRIED_ATTRIBUTES_MAX = 200

const text = textOf(1, SCRUBBING_CHARACTERS)
/** The fast path looks at the last two bytes of a key. */
const keySchema = text.refine(key => /[0-9a-z\x80-\u{10ffff}]{2}[^0-9a-z\x80-\u{10ffff}]*$/iu.test(key), {
  error: 'must end with a word of at least two letters or digits',
})

const kindsSchema = z.array(z.enum(VALUE_KINDS)).min(1, 'must have a kind').max(VALUE_KINDS.length)
const fieldsSchema = z.array(z.enum(PATTERN_FIELDS)).min(1, 'must have a field').max(PATTERN_FIELDS.length)
const actionSchema = z.enum(SCRUBBING_ACTIONS).meta({
  description:
    'mask: `[scrubbed]`. hash: the same text for the same value. remove: no value. keep: the value, whatever later rules say.',
})

/** A rule of scrubbing (docs/api/scrubbing.md). */
const scrubbingRuleSchema = exactObject({
  name: text.meta({ description: 'For people. Unique among the rules.' }),
  keys: listOf(keySchema, SCRUBBED_KEYS_MAX, 'must be a list of keys')
    .refine(keys => keys.length > 0, 'must have a key')
    .optional()
    .meta({
      description:
        'A key matches that ends with the words of one of these: `api key` matches `header.x-api-key` and `apiKey`.',
    }),
  values: kindsSchema.optional().meta({ description: 'Replaced in any text. Without `keys` and `pattern`.' }),
  pattern: textOf(1, PATTERN_CHARACTERS)
    .optional()
    .meta({ description: 'An expression of RE2. Its matches in the values of `keys` and in `fields` are replaced.' }),
  fields: fieldsSchema.optional(),
  action: actionSchema,
})
  .superRefine(({ keys, values, pattern, fields, action }, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    if (values !== undefined && (keys ?? pattern ?? fields) !== undefined)
      refuse('values', 'must be alone: use another rule for keys, pattern and fields')
    else if ((values ?? keys ?? pattern) === undefined) refuse('keys', 'is required, or values, or pattern with fields')
    else if (pattern !== undefined && (keys ?? fields) === undefined)
      refuse('fields', 'is required with pattern, or keys')
    else if (fields !== undefined && pattern === undefined) refuse('pattern', 'is required with fields')
    else if (action === 'keep' && (values ?? pattern) !== undefined)
      refuse('action', 'must not be keep without keys alone')
  })
  .meta({ id: 'ScrubbingRule' })

const rulesSchema = listOf(scrubbingRuleSchema, SCRUBBING_RULES_MAX, 'must be a list of rules')
  .refine(rules => new Set(rules.map(({ name }) => name)).size === rules.length, 'must have names that differ')
  .refine(
    rules => rules.reduce((sum, { keys = [] }) => sum + keys.length, 0) <= ALL_SCRUBBED_KEYS_MAX,
    `must have at most ${ALL_SCRUBBED_KEYS_MAX} keys together`,
  )
  .refine(
    rules => rules.filter(({ pattern }) => pattern !== undefined).length <= PATTERNS_MAX,
    `must have at most ${PATTERNS_MAX} patterns`,
  )
  .meta({
    description: `At most ${SCRUBBING_RULES_MAX}. The first one that matches decides. None: nothing is scrubbed.`,
  })

const revisionSchema = z.int().min(0).max(REVISION_MAX)

/** Body of PUT /v3/scrubbing. */
export const replaceScrubbingSchema = exactObject({
  revision: revisionSchema.meta({ description: 'The revision of the rules that are replaced.' }),
  rules: rulesSchema,
}).meta({ id: 'ReplaceScrubbingRequest' })

/** Body of POST /v3/scrubbing/try. */
export const tryScrubbingSchema = exactObject({
  rules: rulesSchema.optional().meta({ description: 'Those of the workspace by default.' }),
  attributes: z
    .record(z.string(), z.unknown())
    .refine(attributes => Object.keys(attributes).length <= TRIED_ATTRIBUTES_MAX, {
      error: `must have at most ${TRIED_ATTRIBUTES_MAX} members`,
    })
    .meta({ description: 'Attributes as they would arrive.' }),
}).meta({ id: 'TryScrubbingRequest' })

const keptRuleSchema = z
  .strictObject({
    name: z.string(),
    keys: z.array(z.string()).optional(),
    values: kindsSchema.optional(),
    pattern: z.string().optional(),
    fields: fieldsSchema.optional(),
    action: z.enum(SCRUBBING_ACTIONS),
  })
  .meta({ id: 'KeptScrubbingRule' })

/** Response of GET and PUT /v3/scrubbing. */
export const scrubbingAnswerSchema = z
  .strictObject({
    revision: revisionSchema.meta({ description: 'Grows with each change. 0 is that of the default rules.' }),
    changedAt: z.iso.datetime().optional(),
    rules: z.array(keptRuleSchema),
  })
  .meta({ id: 'Scrubbing' })
/** Response of GET and PUT /v3/scrubbing. */
export type ScrubbingAnswer = z.infer<typeof scrubbingAnswerSchema>

/** Response of POST /v3/scrubbing/try. */
export const triedScrubbingSchema = z
  .strictObject({
    attributes: z.record(z.string(), z.unknown()).meta({ description: 'The attributes as they would be stored.' }),
    rules: z
      .array(z.strictObject({ name: z.string(), values: z.int() }))
      .meta({ description: 'How many values each rule replaces.' }),
  })
  .meta({ id: 'TriedScrubbing' })
/** Response of POST /v3/scrubbing/try. */
export type TriedScrubbing = z.infer<typeof triedScrubbingSchema>

const rule = { name: 'customers', keys: ['customer.ssn', 'iban'], action: 'hash' } as const
const kept = DEFAULT_SCRUBBING.map(({ name, keys, action }) => ({ name, keys: keys?.slice(0, 3), action }))

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  readScrubbing: { revision: 0, rules: kept },
  replaceScrubbing: { revision: 28_512_000, changedAt: EXAMPLE_TIMES.createdAt, rules: [rule] },
  tryScrubbing: {
    attributes: { 'http.request.header.authorization': '[scrubbed]', 'http.route': '/cart' },
    rules: [{ name: 'credentials', values: 1 }],
  },
}

/** Reads the rules of scrubbing (docs/api/scrubbing.md). */
export const readScrubbing: PermittedOperation = {
  operationId: 'readScrubbing',
  method: 'GET',
  path: '/v3/scrubbing',
  service: 'operation',
  tag: 'retention',
  summary: 'Read the rules by which values are scrubbed before they are stored',
  permission: 'org:telemetry:read',
  credentials: READER,
  success: {
    status: 200,
    description: 'The rules.',
    contents: { 'application/json': { schema: scrubbingAnswerSchema, example: ANSWERS.readScrubbing } },
  },
  problems: callerProblems,
}

/** Replaces the rules of scrubbing (docs/api/scrubbing.md). */
export const replaceScrubbing: PermittedOperation = {
  operationId: 'replaceScrubbing',
  method: 'PUT',
  path: '/v3/scrubbing',
  service: 'operation',
  tag: 'retention',
  summary: 'Replace the rules by which values are scrubbed before they are stored',
  description:
    'New data is scrubbed by them within seconds. Refused with 409 if the rules have another revision than the one that was read.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: RULES_BODY_BYTES,
    contents: { 'application/json': { schema: replaceScrubbingSchema, example: { revision: 0, rules: [rule] } } },
  },
  success: {
    status: 200,
    description: 'The rules after the change.',
    contents: { 'application/json': { schema: scrubbingAnswerSchema, example: ANSWERS.replaceScrubbing } },
  },
  problems: [...callerProblems, { code: 'REQUEST_INVALID', status: 409 }],
}

/** Tries rules of scrubbing (docs/api/scrubbing.md). */
export const tryScrubbing: PermittedOperation = {
  operationId: 'tryScrubbing',
  method: 'POST',
  path: '/v3/scrubbing/try',
  service: 'operation',
  tag: 'retention',
  summary: 'Show what rules would make of attributes, without keeping either',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: RULES_BODY_BYTES,
    contents: {
      'application/json': {
        schema: tryScrubbingSchema,
        example: {
          rules: kept,
          attributes: { 'http.request.header.authorization': 'Bearer abc', 'http.route': '/cart' },
        },
      },
    },
  },
  success: {
    status: 200,
    description: 'The attributes as they would be stored.',
    contents: { 'application/json': { schema: triedScrubbingSchema, example: ANSWERS.tryScrubbing } },
  },
  problems: callerProblems,
}
