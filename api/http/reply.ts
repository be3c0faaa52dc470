import type { Problem } from '../../schemas/http/problems.ts'
import type { Reply } from '../../shared/http/server.ts'

/** What somebody may read now they may not read tomorrow: nothing on the way keeps it. */
const HEADERS = [
  ['content-type', 'application/json'],
  ['cache-control', 'no-store'],
] as const

export function jsonReply(value: unknown): Reply {
  return { status: 200, headers: HEADERS, body: JSON.stringify(value) }
}

/** Something was made. */
export function createdReply(value: unknown): Reply {
  return { ...jsonReply(value), status: 201 }
}

/** The outcome of a read: what was found, or the problem to answer with. */
export type Outcome<T> = { ok: true; value: T } | { ok: false; problem: Problem }
