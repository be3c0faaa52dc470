import { createHash } from 'node:crypto'
import { IDEMPOTENCY_KEY } from '../../schemas/http/fields.ts'
import type { NewCreation } from './creations.ts'

/** A request that creates something. */
interface CreatingRequest {
  readonly workspaceId: string
  /** Id of the operation, and who calls it. Each has keys of its own. */
  readonly of: readonly (string | null)[]
  /** The key, as `plainKey` returns it. */
  readonly key: string
  /** Everything else by which requests differ. */
  readonly asked: unknown
}

/** Returns the record of a creation that its client may repeat. */
export function newCreation({ workspaceId, of, key, asked }: CreatingRequest, nowMs: number): NewCreation {
  return {
    version: 1,
    workspaceId,
    id: sha256([...of, key]),
    fingerprint: sha256(ordered(asked)),
    createdAt: new Date(nowMs).toISOString(),
  }
}

const QUOTED = /^"(.+)"$/
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Returns the key of a header `Idempotency-Key`, without the quotes of a structured field, or undefined if it is malformed. UUIDs
 * are the same in upper and lower case.
 */
export function plainKey(header: string): string | undefined {
  if (!IDEMPOTENCY_KEY.test(header)) return undefined
  const key = QUOTED.exec(header)?.[1] ?? header
  return UUID.test(key) ? key.toLowerCase() : key
}

/** The refusal of a malformed header. */
export const MALFORMED_KEY = 'Idempotency-Key must have 1 to 255 visible ASCII characters'

function sha256(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex')
}

/** Returns a value in which the order of members, and of texts in a list, makes no difference. All such lists are sets. */
function ordered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    return value.every(entry => typeof entry === 'string') ? [...new Set(value)].sort() : value.map(ordered)
  }
  const members = Object.entries(value).map(([name, member]): [string, unknown] => [name, ordered(member)])
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}
