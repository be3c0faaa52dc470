import { z } from 'zod'
import { FINDING_RULE_CHARACTERS, FINDING_RULES_MAX, REVISION_MAX } from '../../records/finding-rules.ts'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, listOf, textOf } from '../fields.ts'
import type { PermittedOperation } from '../operation.ts'
import { findingsProblems } from '../problem-sets.ts'

/** Variants of exceptions on which rules are tried, those that occurred last. */
export const TRIED_VARIANTS = 500
/** The most examples of what rules change. */
export const TRIED_EXAMPLES = 20
/** Size of the body with rules: all texts at their limit fit if they are ASCII. */
const RULES_BODY_BYTES = 512 * 1024

const text = textOf(1, FINDING_RULE_CHARACTERS)

/** A rule of grouping (docs/api/findings.md#rules). */
const findingRuleSchema = exactObject({
  name: text.meta({ description: 'For people. Unique among the rules.' }),
  type: text.optional().meta({ description: 'Pattern of the type of the exception. `*` matches any text.' }),
  message: text.optional().meta({ description: 'Pattern of the first 500 characters of the message.' }),
  file: text.optional().meta({
    description: 'Pattern of a file or module of the application in the stack, by source maps where they are.',
  }),
  service: text.optional().meta({ description: 'Pattern of `service.name`.' }),
  fingerprint: text.optional().meta({
    description: 'Exceptions of one service with the same one are one finding. `{type}` is the type of the exception.',
  }),
  title: text.optional().meta({ description: 'The title of the finding.' }),
})
  .refine(({ type, message, file, service }) => [type, message, file, service].some(pattern => pattern !== undefined), {
    error: 'must have type, message, file or service',
  })
  .refine(({ fingerprint, title }) => fingerprint !== undefined || title !== undefined, {
    error: 'must have fingerprint or title',
  })
  .refine(({ fingerprint, file }) => fingerprint !== undefined || file === undefined, {
    error: 'must be left out, unless fingerprint is set',
    path: ['file'],
  })
  .meta({ id: 'FindingRule', description: 'A rule of grouping: all of its patterns must match.' })

const rulesSchema = listOf(findingRuleSchema, FINDING_RULES_MAX, 'must be a list of rules')
  .refine(rules => new Set(rules.map(({ name }) => name)).size === rules.length, 'must have names that differ')
  .meta({ description: `At most ${FINDING_RULES_MAX}. The first one that matches decides.` })

const revisionSchema = z.int().min(0).max(REVISION_MAX)

/** Body of PUT /v3/finding-rules. */
export const replaceRulesSchema = exactObject({
  revision: revisionSchema.meta({ description: 'The revision of the rules that are replaced.' }),
  rules: rulesSchema,
}).meta({ id: 'ReplaceFindingRulesRequest' })

/** Body of POST /v3/finding-rules/try. */
export const tryRulesSchema = exactObject({ rules: rulesSchema }).meta({ id: 'TryFindingRulesRequest' })

const keptText = z.string().optional()

/** A rule as it is kept. */
const keptRuleSchema = z
  .strictObject({
    ...{ name: z.string(), type: keptText, message: keptText, file: keptText, service: keptText },
    ...{ fingerprint: keptText, title: keptText },
  })
  .meta({ id: 'KeptFindingRule' })

/** Response of GET and PUT /v3/finding-rules. */
export const findingRulesAnswerSchema = z
  .strictObject({
    revision: revisionSchema.meta({ description: 'Grows with each change. 0 before the first one.' }),
    changedAt: z.iso.datetime().optional(),
    rules: z.array(keptRuleSchema),
    isApplied: z.boolean().meta({
      description: 'Whether everything that is stored has been grouped by them. It takes seconds to minutes.',
    }),
  })
  .meta({ id: 'FindingRules' })
/** Response of GET and PUT /v3/finding-rules. */
export type FindingRulesAnswer = z.infer<typeof findingRulesAnswerSchema>

/** Response of POST /v3/finding-rules/try. */
export const triedRulesSchema = z
  .strictObject({
    stacks: z.int().meta({ description: 'Distinct stacks on which the rules were tried.' }),
    findingsBefore: z.int().meta({ description: 'Findings that these stacks belong to.' }),
    findingsAfter: z.int().meta({ description: 'Findings that they would belong to.' }),
    rules: z
      .array(z.strictObject({ name: z.string(), stacks: z.int() }))
      .meta({ description: 'How many of the stacks each rule decides on.' }),
    moved: z.int().meta({ description: 'Stacks that would belong to another finding.' }),
    examples: z
      .array(
        z.strictObject({
          type: z.string(),
          message: z.string(),
          serviceName: z.string(),
          rule: z.string().optional().meta({ description: 'The rule that matches. Absent if none does any more.' }),
          findingBefore: z.string(),
          findingAfter: z.string(),
        }),
      )
      .meta({ description: `Stacks that would move, at most ${TRIED_EXAMPLES}, one of each finding first.` }),
  })
  .meta({ id: 'TriedFindingRules' })
/** Response of POST /v3/finding-rules/try. */
export type TriedRules = z.infer<typeof triedRulesSchema>

const rule = { name: 'carts', type: 'TypeError', file: '*cart*', fingerprint: 'cart', title: 'The cart is broken' }

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  readFindingRules: { revision: 0, rules: [], isApplied: true },
  replaceFindingRules: { revision: 28_512_000, changedAt: EXAMPLE_TIMES.createdAt, rules: [rule], isApplied: false },
  tryFindingRules: {
    ...{ stacks: 1, findingsBefore: 1, findingsAfter: 1 },
    rules: [{ name: 'carts', stacks: 1 }],
    moved: 1,
    examples: [
      {
        ...{ type: EXAMPLE_EXCEPTION.type, message: EXAMPLE_EXCEPTION.message, serviceName: EXAMPLE.serviceName },
        ...{ findingBefore: EXAMPLE.findingId, findingAfter: 'fnd_aaaaaaaaaaaaaaaaaaaaaaaaaa' },
      },
    ],
  },
} as const

/** Reads the rules of grouping (docs/api/findings.md#rules). */
export const readFindingRules: PermittedOperation = {
  operationId: 'readFindingRules',
  method: 'GET',
  path: '/v3/finding-rules',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Read the rules by which exceptions are grouped into findings',
  credentials: READER,
  permission: 'org:findings:read',
  success: {
    status: 200,
    description: 'The rules.',
    contents: { 'application/json': { schema: findingRulesAnswerSchema, example: ANSWERS.readFindingRules } },
  },
  problems: findingsProblems,
}

/** Replaces the rules of grouping (docs/api/findings.md#rules). */
export const replaceFindingRules: PermittedOperation = {
  operationId: 'replaceFindingRules',
  method: 'PUT',
  path: '/v3/finding-rules',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Replace the rules by which exceptions are grouped into findings',
  description:
    'Stored exceptions move to the findings of the new rules. Refused with 409 if the rules have another revision than the one that was read.',
  credentials: MANAGER,
  permission: 'org:findings:write',
  body: {
    limitBytes: RULES_BODY_BYTES,
    contents: { 'application/json': { schema: replaceRulesSchema, example: { revision: 0, rules: [rule] } } },
  },
  success: {
    status: 200,
    description: 'The rules after the change.',
    contents: { 'application/json': { schema: findingRulesAnswerSchema, example: ANSWERS.replaceFindingRules } },
  },
  problems: [...findingsProblems, { code: 'REQUEST_INVALID', status: 409 }],
}

/** Tries rules of grouping on what is stored (docs/api/findings.md#rules). */
export const tryFindingRules: PermittedOperation = {
  operationId: 'tryFindingRules',
  method: 'POST',
  path: '/v3/finding-rules/try',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Try rules on the exceptions that occurred last, without keeping them',
  credentials: READER,
  permission: 'org:findings:read',
  body: {
    limitBytes: RULES_BODY_BYTES,
    contents: { 'application/json': { schema: tryRulesSchema, example: { rules: [rule] } } },
  },
  success: {
    status: 200,
    description: 'The changes that the rules would make.',
    contents: { 'application/json': { schema: triedRulesSchema, example: ANSWERS.tryFindingRules } },
  },
  problems: findingsProblems,
}
