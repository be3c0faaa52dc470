import { z } from 'zod'
import { RETAINED_KINDS, RETENTION_MAX_DAYS, type RetainedKind } from '../../records/directory.ts'
import { exactObject } from '../fields.ts'

const DESCRIPTIONS: Readonly<Record<RetainedKind, string>> = {
  traces: 'Spans.',
  logs: 'Log records.',
  metrics: 'Data points of metrics.',
  findings: 'Exceptions, and the findings that they are grouped into.',
  sessions: 'Identities and heartbeats of sessions.',
  replay: 'Replay chunks.',
  builds: 'Reports of builds.',
  deadLetters: 'Dead letters.',
  releases: 'Releases with their source maps, from the last completion or the registration on. Null: until deleted.',
}

const DAYS_RULE = `must be a whole number of days from 1 to ${RETENTION_MAX_DAYS}, or null for the default`
const daysSchema = z
  .int(DAYS_RULE)
  .min(1, DAYS_RULE)
  .max(RETENTION_MAX_DAYS, DAYS_RULE)
  .nullable()
  .optional()
  .meta({ description: 'Days. Null or absent: the default of the installation.' })

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
export const retentionAnswerSchema = z
  .strictObject({
    retention: z.strictObject({
      maxDays: z.int().meta({ description: 'The default of everything but releases, and its upper limit.' }),
      kinds: z.strictObject(ofEachKind(keptSchema)),
    }),
  })
  .meta({ id: 'Retention' })
/** Response of GET and PUT /v3/retention. */
export type RetentionAnswer = z.infer<typeof retentionAnswerSchema>
