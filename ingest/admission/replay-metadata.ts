import { isUtf8 } from 'node:buffer'
import { type ReplayMetadata, replayMetadataSchema } from '../../schemas/http/replay.ts'

/** Why the metadata of an upload is absent or unusable. Such an upload is not kept (docs/api/sessions.md#replay). */
export type MetadataFault = 'absent' | 'not_base64' | 'not_json_object' | 'invalid_fields'

/** The metadata of an upload, or why there is none. */
type DecodedMetadata =
  | { readonly ok: true; readonly metadata: ReplayMetadata }
  | { readonly ok: false; readonly reason: MetadataFault }

/**
 * Decodes base64 of a JSON object, also as base64url, without padding and with blanks. JSON that is not UTF-8 is Latin-1,
 * because `btoa` encodes the characters of a text as single bytes.
 */
export function decodeReplayMetadata(encoded: string | undefined): DecodedMetadata {
  if (encoded === undefined || encoded === '') return { ok: false, reason: 'absent' }
  const symbols = encoded.trim()
  // An unescaped + in a query is decoded to a space. Another space is not part of the base64. Only one reading gives JSON.
  const decoded = decodeBase64(symbols.replaceAll(' ', '+'))
  return decoded.ok || !/\s/.test(symbols) ? decoded : decodeBase64(symbols.replace(/\s+/g, ''))
}

function decodeBase64(symbols: string): DecodedMetadata {
  const digits = symbols.replace(/={1,2}$/, '')
  if (!/^[A-Za-z0-9+/_-]+$/.test(digits) || digits.length % 4 === 1) return { ok: false, reason: 'not_base64' }
  const value = parseObject(Buffer.from(digits, 'base64'))
  if (value === undefined) return { ok: false, reason: 'not_json_object' }
  const result = replayMetadataSchema.safeParse(value)
  return result.success ? { ok: true, metadata: result.data } : { ok: false, reason: 'invalid_fields' }
}

function parseObject(bytes: Buffer): object | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1'))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
