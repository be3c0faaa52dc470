import { IDEMPOTENCY_KEY_HEADER } from '../../schemas/http/fields.ts'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import type { Creation } from '../../schemas/records/creation.ts'
import { CreationRefused, type NewCreation, TOO_MANY_CREATIONS } from '../../shared/directory/creations.ts'
import { MALFORMED_KEY, newCreation, plainKey } from '../../shared/directory/new-creation.ts'
import type { BodyRequest } from './body-route.ts'
import { invalid, type Outcome, type Refusal } from './outcome.ts'

/** Rules of docs/api/requests.md#idempotency: the same key with the same request creates once, and gets the same response. */

const MALFORMED = invalid(MALFORMED_KEY)
const TWO_KEYS = invalid('Idempotency-Key must be absent or the same as idempotencyKey')
const TOO_MANY: Refusal = { ok: false, problem: { code: 'INGEST_BACKPRESSURE', ...TOO_MANY_CREATIONS } }

/** Returns the record of a creation that its client may repeat, or undefined if the request has no idempotency key. */
export function creationOf(
  operation: PermittedOperation,
  { caller, body, param, idempotencyKey: header }: Omit<BodyRequest<unknown>, 'exchange' | 'closed'>,
  nowMs: number,
): Outcome<NewCreation | undefined> {
  const { operationId, parameters: { path, header: headers } = {} } = operation
  if (headers === undefined || !(IDEMPOTENCY_KEY_HEADER in headers.shape)) return { ok: true, value: undefined }
  const named = header === undefined ? undefined : plainKey(header)
  if (header !== undefined && named === undefined) return MALFORMED
  const { idempotencyKey: field, ...asked } = body as { readonly idempotencyKey?: string }
  if (field !== undefined && named !== undefined && field !== named) return TWO_KEYS
  const key = field ?? named
  if (key === undefined) return { ok: true, value: undefined }
  const { workspaceId, userId, apiKeyId } = caller
  const names = Object.keys(path?.shape ?? {})
  const of = [operationId, userId, apiKeyId]
  return { ok: true, value: newCreation({ workspaceId, of, key, asked: [names.map(param), asked] }, nowMs) }
}

/** How a repeated request is answered. */
export interface Repetition<B, T> {
  /** Returns the response of the earlier request; what is stored unless given. */
  readonly repeat?: (earlier: Creation, body: B) => Promise<Outcome<T>>
  /** Returns how a request differs from the earlier one, in text that follows the name of the idempotency key. */
  readonly difference?: (earlier: Creation, body: B) => string
}

/** Runs a creation. If it happened before, returns the earlier response, or a conflict if the request is another one. */
export async function createOnce<B, T>(
  creation: NewCreation | undefined,
  body: B,
  create: () => Promise<Outcome<T>>,
  { repeat = async earlier => ({ ok: true, value: earlier.answer as T }), difference }: Repetition<B, T>,
): Promise<Outcome<T>> {
  try {
    return await create()
  } catch (error) {
    if (!(error instanceof CreationRefused)) throw error
    const { stored } = error
    if (stored === undefined) return TOO_MANY
    if (stored.fingerprint === creation?.fingerprint) return repeat(stored, body)
    return conflict(body, difference?.(stored, body) ?? 'was used with another request')
  }
}

/** Refuses a repeated request. The reason follows the name of the field or of the header. */
export function conflict(body: unknown, reason: string): Refusal {
  const { idempotencyKey } = body as { readonly idempotencyKey?: string }
  const name = idempotencyKey === undefined ? 'Idempotency-Key' : 'idempotencyKey'
  return { ok: false, problem: { code: 'IDEMPOTENCY_CONFLICT', message: `${name} ${reason}` } }
}
