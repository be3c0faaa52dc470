import { z } from 'zod'
import {
  ALL_DROP_CONDITIONS_MAX,
  DROP_CHARACTERS,
  DROP_CONDITIONS_MAX,
  DROP_RULES_MAX,
  DROP_SIGNALS,
} from '../../records/dropping.ts'
import { REVISION_MAX } from '../../records/finding-rules.ts'
import { MANAGER, READER } from '../credentials.ts'
import { EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, listOf, textOf } from '../fields.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'

/** Size of the body with rules: all texts at their limit fit if they are ASCII. */
const RULES_BODY_BYTES = 128 * 1024

const text = textOf(1, DROP_CHARACTERS)
const conditionsOf = <S extends z.ZodType>(entry: S) =>
  listOf(entry, DROP_CONDITIONS_MAX, 'must be a list')
    .refine(conditions => conditions.length > 0, 'must not be empty')
    .optional()
/** Either the whole name, or its beginning and `*`. */
const nameSchema = text.refine(name => !name.slice(0, -1).includes('*'), { error: 'must have * only at its end' })
const signalsSchema = z.array(z.enum(DROP_SIGNALS)).min(1, 'must not be empty').max(DROP_SIGNALS.length)

const shape = {
  name: text.meta({ description: 'Counts of dropped records have it. Unique among the rules.' }),
  signals: signalsSchema.optional().meta({ description: 'All of them by default.' }),
  services: conditionsOf(text).meta({ description: 'Values of `service.name`.' }),
  names: conditionsOf(nameSchema).meta({
    description: 'Names of spans and metrics, and event names of log records. `GET /health*` matches by its beginning.',
  }),
  attributes: conditionsOf(exactObject({ key: text, value: text.optional() })).meta({
    description: 'All match, on the record or its resource: the key, and the value if there is one.',
  }),
  keep: z.number().min(0).max(1).optional().meta({
    description:
      'Share of the traces that is stored nevertheless, by the hash of their ids. 0 by default; 1 keeps all.',
  }),
}

/** A rule of dropping (docs/api/dropping.md). */
const dropRuleSchema = exactObject(shape)
  .refine(({ signals, services, names, attributes }) => signals ?? services ?? names ?? attributes, {
    error: 'is required, or services, names or attributes',
    path: ['signals'],
  })
  .meta({ id: 'DropRule' })

type Conditions = { readonly [K in 'services' | 'names' | 'attributes']?: readonly unknown[] | undefined }
const conditionsIn = ({ services = [], names = [], attributes = [] }: Conditions) =>
  services.length + names.length + attributes.length

const rulesSchema = listOf(dropRuleSchema, DROP_RULES_MAX, 'must be a list of rules')
  .refine(rules => new Set(rules.map(({ name }) => name)).size === rules.length, 'must have names that differ')
  .refine(
    rules => rules.reduce((sum, rule) => sum + conditionsIn(rule), 0) <= ALL_DROP_CONDITIONS_MAX,
    `must have at most ${ALL_DROP_CONDITIONS_MAX} services, names and attributes together`,
  )
  .meta({ description: `At most ${DROP_RULES_MAX}. The first one that matches a record decides.` })

const revisionSchema = z.int().min(0).max(REVISION_MAX)

/** Records that rules have dropped. */
export const droppedSchema = z
  .array(z.strictObject({ rule: z.string(), count: z.int().min(1) }))
  .meta({ id: 'DroppedRecords', description: 'Number of records that rules of the workspace dropped, by rule.' })

/** Body of PUT /v3/dropping. */
export const replaceDroppingSchema = exactObject({
  revision: revisionSchema.meta({ description: 'The revision of the rules that are replaced.' }),
  rules: rulesSchema,
}).meta({ id: 'ReplaceDroppingRequest' })

const texts = z.array(z.string()).optional()
const keptRuleSchema = z
  .strictObject({
    name: z.string(),
    signals: signalsSchema.optional(),
    ...{ services: texts, names: texts },
    attributes: z.array(z.strictObject({ key: z.string(), value: z.string().optional() })).optional(),
    keep: z.number().optional(),
  })
  .meta({ id: 'KeptDropRule' })

/** Response of GET and PUT /v3/dropping. */
export const droppingAnswerSchema = z
  .strictObject({
    revision: revisionSchema.meta({ description: 'Grows with each change. 0 if there never was a rule.' }),
    changedAt: z.iso.datetime().optional(),
    rules: z.array(keptRuleSchema),
  })
  .meta({ id: 'Dropping' })
/** Response of GET and PUT /v3/dropping. */
export type DroppingAnswer = z.infer<typeof droppingAnswerSchema>

const rule = {
  name: 'health checks',
  signals: ['traces'] as ['traces'],
  names: ['GET /health*'],
  attributes: [{ key: 'deployment.environment.name', value: 'production' }],
  keep: 0.01,
}

/** Reads the rules of dropping (docs/api/dropping.md). */
export const readDropping: PermittedOperation = {
  operationId: 'readDropping',
  method: 'GET',
  path: '/v3/dropping',
  service: 'operation',
  tag: 'retention',
  summary: 'Read the rules by which records are dropped before they are stored',
  permission: 'org:telemetry:read',
  credentials: READER,
  success: {
    status: 200,
    description: 'The rules.',
    contents: { 'application/json': { schema: droppingAnswerSchema, example: { revision: 0, rules: [] } } },
  },
  problems: callerProblems,
}

/** Replaces the rules of dropping (docs/api/dropping.md). */
export const replaceDropping: PermittedOperation = {
  operationId: 'replaceDropping',
  method: 'PUT',
  path: '/v3/dropping',
  service: 'operation',
  tag: 'retention',
  summary: 'Replace the rules by which records are dropped before they are stored',
  description:
    'New data is dropped by them within seconds. Refused with 409 if the rules have another revision than the one that was read.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: RULES_BODY_BYTES,
    contents: {
      'application/json': { schema: replaceDroppingSchema, example: { revision: 0, rules: [rule] } },
    },
  },
  success: {
    status: 200,
    description: 'The rules after the change.',
    contents: {
      'application/json': {
        schema: droppingAnswerSchema,
        example: { revision: 28_512_000, changedAt: EXAMPLE_TIMES.createdAt, rules: [rule] },
      },
    },
  },
  problems: [...callerProblems, { code: 'REQUEST_INVALID', status: 409 }],
}
