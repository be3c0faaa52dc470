import { z } from 'zod'
import { alertsSchema } from '../../../schemas/records/alerts.ts'
import { changeSchema, findingEntrySchema } from '../../../schemas/records/change.ts'
import { creationSchema } from '../../../schemas/records/creation.ts'
import {
  manifestPointerSchema,
  memberSchema,
  receiptSecretSchema,
  releaseSchema,
  surfaceKeySchema,
  surfaceSchema,
  userSchema,
  workspaceKeySchema,
  workspaceSchema,
} from '../../../schemas/records/directory.ts'
import { droppingSchema } from '../../../schemas/records/dropping.ts'
import { erasureSchema } from '../../../schemas/records/erasure.ts'
import { findingRulesSchema } from '../../../schemas/records/finding-rules.ts'
import { findingWorkSchema } from '../../../schemas/records/finding-work.ts'
import { installationSchema } from '../../../schemas/records/installation.ts'
import { scrubbingSchema } from '../../../schemas/records/scrubbing.ts'
import { parseJson } from '../../json/parse-json.ts'
import { FINDING_ENTRIES_KEPT } from '../findings/activity.ts'

/** Maximum number of changes in one line. */
export const CHANGES_PER_LINE = 500
/** Maximum number of maps in one line. */
export const MAPS_PER_LINE = 1_000

/** The pointer to the current manifest of a release. */
const manifestLineSchema = manifestPointerSchema.extend({
  workspaceId: z.string(),
  releaseSlug: releaseSchema.shape.slug,
})
/** The record of a `manifest` line. */
export type ManifestLine = z.infer<typeof manifestLineSchema>

/** SHA-256 digests of source maps that are in the object store. A workspace may have several such lines. */
const storedMapsLineSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  sha256s: z
    .array(z.string().regex(/^[0-9a-f]{64}$/))
    .min(1)
    .max(MAPS_PER_LINE),
})
/** The record of a `stored-maps` line. */
export type StoredMapsLine = z.infer<typeof storedMapsLineSchema>

/** Changes of a workspace. A workspace may have several such lines. */
const changesLineSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  changes: z.array(changeSchema).min(1).max(CHANGES_PER_LINE),
})
/** The record of a `changes` line. */
export type ChangesLine = z.infer<typeof changesLineSchema>

/** The work of members on a finding, with its activity, the latest first. */
const findingWorkLineSchema = findingWorkSchema.extend({
  activity: z.array(findingEntrySchema).max(FINDING_ENTRIES_KEPT),
})
/** The record of a `finding-work` line. */
export type FindingWorkLine = z.infer<typeof findingWorkLineSchema>

/** The last line. A text without it is incomplete. */
const endLineSchema = z.object({ version: z.literal(1), records: z.number().int().min(0) })

/**
 * The kinds of lines in an export. Each line is `{ "kind": …, "record": { "version": 1, … } }`. The installation, the secret of
 * receipts and the users come first, then each workspace with its records in the order of these kinds, and `end` last.
 */
const LINE_SCHEMAS = {
  installation: installationSchema,
  'receipt-secret': receiptSecretSchema,
  user: userSchema,
  workspace: workspaceSchema,
  member: memberSchema,
  surface: surfaceSchema,
  'surface-key': surfaceKeySchema,
  'workspace-key': workspaceKeySchema,
  creation: creationSchema,
  release: releaseSchema,
  manifest: manifestLineSchema,
  'stored-maps': storedMapsLineSchema,
  erasure: erasureSchema,
  'finding-work': findingWorkLineSchema,
  'finding-rules': findingRulesSchema,
  scrubbing: scrubbingSchema,
  dropping: droppingSchema,
  alerts: alertsSchema,
  changes: changesLineSchema,
  end: endLineSchema,
} as const
/** The kind of a line. */
export type LineKind = keyof typeof LINE_SCHEMAS
/** A line of an export. */
export type Line = { [K in LineKind]: { kind: K; record: z.infer<(typeof LINE_SCHEMAS)[K]> } }[LineKind]

/** A line that contains a record. */
export type RecordLine = Exclude<Line, { kind: 'end' }>

/** A line, or the reason why it is invalid. */
type ParsedLine = { ok: true; line: Line } | { ok: false; reason: string }

/** Parses a line of an export. The reason of an invalid line names the field and the rule. */
export function parseLine(text: string): ParsedLine {
  const envelope = envelopeSchema.safeParse(parseJson(text))
  if (!envelope.success) return refuse('is not a JSON object { "kind": …, "record": { "version": … } }')
  const { kind, record } = envelope.data
  const schema = Object.hasOwn(LINE_SCHEMAS, kind) ? LINE_SCHEMAS[kind as LineKind] : undefined
  if (schema === undefined) return refuse(`the kind ${JSON.stringify(kind)} is unknown`)
  if (record.version !== 1) {
    return refuse(`version ${JSON.stringify(record.version)} of the kind "${kind}" is unknown`)
  }
  const result = schema.strict().safeParse(record)
  if (!result.success) {
    const [issue] = result.error.issues
    return refuse(`${[kind, ...(issue?.path ?? [])].join('.')}: ${issue?.message}`)
  }
  return { ok: true, line: { kind, record: result.data } as Line }
}

const envelopeSchema = z.strictObject({
  kind: z.string().max(100),
  record: z.looseObject({ version: z.union([z.number(), z.string().max(100)]) }),
})

function refuse(reason: string): ParsedLine {
  return { ok: false, reason }
}
