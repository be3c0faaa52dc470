import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { ArrivalPlace } from '../../clickhouse/queries/findings/select-findings-page.ts'
import type { FindingsSnapshot } from '../../clickhouse/queries/findings/select-findings-snapshot.ts'
import { CURSOR_FAULT, invalid } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'

/** A place in a list that is ordered by arrival, as text that means nothing to clients. */
export interface ArrivalCursor {
  readonly place: ArrivalPlace
  /** What the list is of, for lists that are read as of their first page. */
  readonly snapshot?: FindingsSnapshot | undefined
}

/** `finding_arrivals` (migration 0012) forgets after two days what pages after the first are read of. */
const SNAPSHOT_MAX_AGE_MS = 86_400_000

const unixMs = z.string().regex(/^\d{1,15}$/)
const cursorSchema = z.tuple([
  z.string(),
  unixMs,
  unixMs,
  z.string().regex(/^(fnd_[a-z2-7]{26}|[0-9a-f]{32})$/),
  z.tuple([z.number().int().min(0).max(Number.MAX_SAFE_INTEGER), z.number().int().min(0)]).nullable(),
])

/** `list` says which list the cursor is of (workspace, filters): in another it is none. */
export function encodeArrivalCursor(list: readonly unknown[], { place, snapshot }: ArrivalCursor): string {
  const { storedMs, receivedMs, id } = place
  const asOf = snapshot ? [snapshot.asOfMs, snapshot.block] : null
  return Buffer.from(JSON.stringify([nameOf(list), storedMs, receivedMs, id, asOf])).toString('base64url')
}

export function decodeArrivalCursor(
  list: readonly unknown[],
  text: string | undefined,
  nowMs: number,
): Outcome<ArrivalCursor | undefined> {
  if (text === undefined) return { ok: true, value: undefined }
  const parsed = cursorSchema.safeParse(parseJson(Buffer.from(text, 'base64url').toString()))
  if (!parsed.success) return invalid(CURSOR_FAULT, 'api-findings')
  const [name, storedMs, receivedMs, id, asOf] = parsed.data
  if (name !== nameOf(list)) return invalid('cursor is of a list with other filters', 'api-findings')
  const snapshot = asOf === null ? undefined : { asOfMs: asOf[0], block: asOf[1] }
  if (snapshot && nowMs - snapshot.asOfMs > SNAPSHOT_MAX_AGE_MS) {
    return invalid('cursor is older than a day: read the list from its beginning', 'api-findings')
  }
  return { ok: true, value: { place: { id, storedMs, receivedMs }, snapshot } }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** 72 bits: enough to tell filters apart, and nothing is let in by a match. */
function nameOf(list: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(list)).digest('base64url').slice(0, 12)
}
