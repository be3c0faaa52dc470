import { z } from 'zod'
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
} from '../../schemas/records/directory.ts'

/** How many maps one line names at most. */
export const MAPS_PER_LINE = 1_000

/** Where the manifest of a release is. */
export const manifestLineSchema = manifestPointerSchema.extend({
  workspaceId: z.string(),
  releaseSlug: releaseSchema.shape.slug,
})
export type ManifestLine = z.infer<typeof manifestLineSchema>

/** Some of the maps (SHA-256) whose bytes are in the object store. */
export const storedMapsLineSchema = z.object({
  version: z.literal(1),
  workspaceId: z.string(),
  sha256s: z
    .array(z.string().regex(/^[0-9a-f]{64}$/))
    .min(1)
    .max(MAPS_PER_LINE),
})
export type StoredMapsLine = z.infer<typeof storedMapsLineSchema>

/** The last line: what has it is whole. */
export const endLineSchema = z.object({ version: z.literal(1), records: z.number().int().min(0) })

/**
 * What an export consists of: one `{ "kind": …, "record": { "version": 1, … } }` a line, in the order of these kinds
 * within each workspace, the secret of receipts and users first, and the end last.
 */
export const LINE_SCHEMAS = {
  'receipt-secret': receiptSecretSchema,
  user: userSchema,
  workspace: workspaceSchema,
  member: memberSchema,
  surface: surfaceSchema,
  'surface-key': surfaceKeySchema,
  'workspace-key': workspaceKeySchema,
  release: releaseSchema,
  manifest: manifestLineSchema,
  'stored-maps': storedMapsLineSchema,
  end: endLineSchema,
} as const
export type LineKind = keyof typeof LINE_SCHEMAS
export type Line = { [K in LineKind]: { kind: K; record: z.infer<(typeof LINE_SCHEMAS)[K]> } }[LineKind]

export type ParsedLine = { ok: true; line: Line } | { ok: false; reason: string }

/** Reads a line of an export; what is wrong with it is a value that names field and rule. */
export function parseLine(text: string): ParsedLine {
  const envelope = envelopeSchema.safeParse(parseJson(text))
  if (!envelope.success) return refuse('is no JSON object { "kind": …, "record": { "version": … } }')
  const { kind, record } = envelope.data
  const schema = Object.hasOwn(LINE_SCHEMAS, kind) ? LINE_SCHEMAS[kind as LineKind] : undefined
  if (schema === undefined) return refuse(`the kind ${JSON.stringify(kind)} is not known here`)
  if (record.version !== 1) {
    return refuse(`version ${JSON.stringify(record.version)} of the kind "${kind}" is not known here`)
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refuse(reason: string): ParsedLine {
  return { ok: false, reason }
}
