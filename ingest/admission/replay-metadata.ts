import { type ReplayMetadata, replayMetadataSchema } from '../../schemas/http/replay/schemas.ts'

/** Why an upload is not kept: its metadata is not there, or not usable (CONTRACT 4.3). */
export type MetadataFault = 'absent' | 'not_base64' | 'not_json_object' | 'invalid_fields'

export type DecodedMetadata =
  | { readonly ok: true; readonly metadata: ReplayMetadata }
  | { readonly ok: false; readonly reason: MetadataFault }

/** Base64 of a JSON object. base64url is taken too, and padding may be missing: a query parameter suffers both. */
export function decodeReplayMetadata(encoded: string | undefined): DecodedMetadata {
  if (encoded === undefined || encoded === '') return { ok: false, reason: 'absent' }
  // An unescaped + in a query reads as a space.
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
