import { z } from 'zod'
import type { ListPlace } from '../shared/control-index.ts'
import { CURSOR_FAULT, invalid } from './parse-query.ts'
import type { Outcome } from './reply.ts'

/** The last one of a page of things that are ordered by when they were made, as text that means nothing to clients. */
export function encodeControlPlace({ createdAt, id }: { createdAt: string; id: string }): string {
  return Buffer.from(JSON.stringify([Date.parse(createdAt), id])).toString('base64url')
}

const placeSchema = z.tuple([z.int().min(0), z.string().regex(/^[a-z]{3}_[0-9a-z]{1,64}$/)])

export function decodeControlPlace(cursor: string | undefined): Outcome<ListPlace | undefined> {
  if (cursor === undefined) return { ok: true, value: undefined }
  try {
    const [createdAtMs, id] = placeSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
    return { ok: true, value: { createdAtMs, id } }
  } catch {
    return invalid(CURSOR_FAULT, 'operation')
  }
}
