import { type ReplayMetadata, replayMetadataSchema } from '../../schemas/http/replay.ts'

/** Why the metadata of an upload is absent or unusable. Such an upload is not kept (docs/api/sessions.md#replay). */
export type MetadataFault = 'absent' | 'not_base64' | 'not_json_object' | 'invalid_fields'

/** The metadata of an upload, or why there is none. */
type DecodedMetadata =
  | { readonly ok: true; readonly metadata: ReplayMetadata }
  | { readonly ok: false; readonly reason: MetadataFault }

/**
 * Decodes base64 of a JSON object. Also accepts base64url and missing padding, because metadata may come in a query
 * parameter.
 */
export function decodeReplayMetadata(encoded: string | undefined): DecodedMetadata {
  if (encoded === undefined || encoded === '') return { ok: false, reason: 'absent' }
  // An unescaped + in a query is decoded to a space.
  const symbols = encoded.trim().replaceAll(' ', '+')
  const digits = symbols.replace(/={1,2}$/, '')
  if (!/^[A-Za-z0-9+/_-]+$/.test(digits) || digits.length % 4 === 1) return { ok: false, reason: 'not_base64' }
  const value = parseObject(Buffer.from(digits, 'base64'))
  if (value === undefined) return { ok: false, reason: 'not_json_object' }
  const result = replayMetadataSchema.safeParse(value)
  return result.success ? { ok: true, metadata: result.data } : { ok: false, reason: 'invalid_fields' }
}

function parseObject(bytes: Uint8Array): object | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
