import { z } from 'zod'
import { RETAINED_KINDS, RETENTION_MAX_DAYS, type RetainedKind } from '../../records/directory.ts'
import { MANAGER, READER } from '../credentials.ts'
import { exactObject } from '../fields.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems } from '../problem-sets.ts'

const DESCRIPTIONS: Readonly<Record<RetainedKind, string>> = {
  traces: 'Spans.',
  logs: 'Log records.',
  metrics: 'Data points of metrics.',
  findings: 'Exceptions, and the findings that they are grouped into.',
  sessions: 'Identities and heartbeats of sessions.',
  replay: 'Replay chunks.',
  'build-reports': 'Reports of builds.',
  'dead-letters': 'Dead letters.',
  releases: 'Releases with their source maps, from the last completion or the registration on. Null: until deleted.',
}

const DAYS_RULE = `must be a whole number of days from 1 to ${RETENTION_MAX_DAYS}, or null for the default`
const daysSchema = z
  .int(DAYS_RULE)
  .min(1, DAYS_RULE)
  .max(RETENTION_MAX_DAYS, DAYS_RULE)
  .nullable()
  .optional()
  .meta({ id: 'RetentionDays', description: 'Days. Null or absent: the default of the installation.' })

/** Returns an object with the schema of each kind of data. */
function ofEachKind<S extends z.ZodType>(schemaOf: (kind: RetainedKind) => S): Record<RetainedKind, S> {
  return Object.fromEntries(RETAINED_KINDS.map(kind => [kind, schemaOf(kind)])) as Record<RetainedKind, S>
}

/** Body of PUT /v3/retention. It replaces all values, so that an absent one is reset to the default. */
export const replaceRetentionSchema = exactObject(ofEachKind(() => daysSchema)).meta({ id: 'ReplaceRetentionRequest' })
/** Body of PUT /v3/retention. */
export type ReplaceRetention = z.infer<typeof replaceRetentionSchema>

const keptSchema = (kind: RetainedKind) =>
  z
    .strictObject({ days: kind === 'releases' ? z.int().nullable() : z.int(), isDefault: z.boolean() })
    .meta({ description: DESCRIPTIONS[kind] })

/** Response of GET and PUT /v3/retention. */
const retentionAnswerSchema = z
  .strictObject({
    retention: z.strictObject({
      maxDays: z.int().meta({ description: 'The default of everything but releases, and its upper limit.' }),
      kinds: z.strictObject(ofEachKind(keptSchema)),
    }),
  })
  .meta({ id: 'Retention' })
/** Response of GET and PUT /v3/retention. */
export type RetentionAnswer = z.infer<typeof retentionAnswerSchema>

const byDefault = { days: 30, isDefault: true }

const retention = {
  maxDays: 30,
  kinds: {
    traces: { days: 14, isDefault: false },
    logs: byDefault,
    metrics: byDefault,
    findings: byDefault,
    sessions: byDefault,
    replay: { days: 7, isDefault: false },
    'build-reports': byDefault,
    'dead-letters': byDefault,
    releases: { days: null, isDefault: true },
  },
}

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  readRetention: { retention },
  replaceRetention: { retention },
} as const

/** Reads how long data is kept (docs/api/retention.md#retention). */
export const readRetention: PermittedOperation = {
  operationId: 'readRetention',
  method: 'GET',
  path: '/v3/retention',
  service: 'operation',
  tag: 'retention',
  summary: 'Read how long each kind of data of the workspace is kept',
  permission: 'org:telemetry:read',
  credentials: READER,
  success: {
    status: 200,
    description: 'The retention of each kind of data.',
    contents: { 'application/json': { schema: retentionAnswerSchema, example: ANSWERS.readRetention } },
  },
  problems: callerProblems,
}

/** Replaces how long data is kept (docs/api/retention.md#retention). */
export const replaceRetention: PermittedOperation = {
  operationId: 'replaceRetention',
  method: 'PUT',
  path: '/v3/retention',
  service: 'operation',
  tag: 'retention',
  summary: 'Replace how long each kind of data of the workspace is kept',
  description:
    'A shorter retention deletes what is older, for good. `sessions` must be at least as long as `traces`, `logs`, `findings`, `replay` and `dead-letters`, defaults included.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: replaceRetentionSchema, example: { traces: 14, replay: 7 } } },
  },
  success: {
    status: 200,
    description: 'The retention after the change.',
    contents: { 'application/json': { schema: retentionAnswerSchema, example: ANSWERS.replaceRetention } },
  },
  problems: callerProblems,
}
