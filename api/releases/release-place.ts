import { z } from 'zod'
import { releaseSlugSchema } from '../../schemas/http/releases/schemas.ts'
import type { ReleaseCursor } from '../../shared/directory/release-store.ts'
import { CURSOR_FAULT, invalid } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'

const whole = z.number().int().min(0)
const releasePlaceSchema = z.tuple([whole, releaseSlugSchema])
const manifestPlaceSchema = z.tuple([whole, whole])

/** Where a page of a manifest ended: which manifest, and the byte behind the last file of the page. */
export interface ManifestPlace {
  readonly sequence: number
  readonly offset: number
}

export function encodeReleasePlace({ createdAtMs, slug }: ReleaseCursor): string {
  return encode([createdAtMs, slug])
}

export function decodeReleasePlace(cursor: string | undefined): Outcome<ReleaseCursor | undefined> {
  return decode(cursor, text => {
    const [createdAtMs, slug] = releasePlaceSchema.parse(JSON.parse(text))
    return { createdAtMs, slug }
  })
}

export function encodeManifestPlace({ sequence, offset }: ManifestPlace): string {
  return encode([sequence, offset])
}

export function decodeManifestPlace(cursor: string | undefined): Outcome<ManifestPlace | undefined> {
  return decode(cursor, text => {
    const [sequence, offset] = manifestPlaceSchema.parse(JSON.parse(text))
    return { sequence, offset }
  })
}

/** As text that means nothing to clients. */
function encode(place: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

function decode<T>(cursor: string | undefined, read: (text: string) => T): Outcome<T | undefined> {
  if (cursor === undefined) return { ok: true, value: undefined }
  try {
    return { ok: true, value: read(Buffer.from(cursor, 'base64url').toString()) }
  } catch {
    return invalid(CURSOR_FAULT, 'api-analytics')
  }
}
