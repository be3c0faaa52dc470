import type { Problem } from '../../schemas/http/problems.ts'
import type { ReceiptAnswer } from '../../schemas/http/receipts/schemas.ts'
import { PERMISSIONS } from '../../schemas/records/directory.ts'
import { problemReply, type Reply, type Route } from '../../shared/http/route.ts'
import { describeError, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Guard } from '../auth/authenticate.ts'
import { type PresentedSurfaceKey, presentedSurfaceKey, surfaceKeyAccess } from '../auth/surface-key-access.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { jsonReply, type Outcome } from '../http/reply.ts'
import type { ApiDeps } from '../routes.ts'
import { loadReceipt, type ReceiptReader } from './load-receipt.ts'

const NOT_FOUND: Problem = { code: 'NOT_FOUND', message: 'there is no such receipt, or it is no longer retained' }
const UNAVAILABLE: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'receipts cannot be read at the moment',
  retryAfterSeconds: 5,
}
const ABSENT: Problem = { code: 'AUTH_MISSING', message: 'a public key, a secret key or a token is required' }

/** For tokens: whoever may read anything that payloads become may know that they became it. */
const RECEIPTS_GUARD: Guard = {
  permission: PERMISSIONS.filter(permission => permission.endsWith(':read')),
  notFound: NOT_FOUND,
  unavailable: UNAVAILABLE,
}

/**
 * GET /v3/receipts/{receiptId} (CONTRACT section 5): what became of a request that was accepted, for the surface that sent
 * it and for its workspace. Whatever is no receipt of theirs looks the same.
 */
export function readReceiptRoute(deps: ApiDeps): Route {
  return {
    method: 'GET',
    path: '/v3/receipts/:receiptId',
    bodyLimitBytes: 0,
    // A page may ask with the public key that it has sent with.
    cors: true,
    accept(head) {
      const id = head.param('receiptId')
      const authorization = head.header('authorization')
      const key = presentedSurfaceKey(head)
      if (key === undefined && authorization === undefined) return problemReply(ABSENT)
      return readReceipt(deps, { authorization, key }, id)
    },
  }
}

interface Credential {
  readonly authorization: string | undefined
  readonly key: PresentedSurfaceKey | undefined
}

async function readReceipt(deps: ApiDeps, credential: Credential, id: string): Promise<Reply> {
  const signal = AbortSignal.timeout(deps.queryTimeoutMs)
  try {
    const reader = await readerOf(deps, credential)
    if (!reader.ok) return problemReply(reader.problem)
    const secret = await askDirectory(deps.receiptSecret())
    const receipt = await loadReceipt({ ...deps, secret }, reader.value, id, signal)
    return receipt ? jsonReply({ receipt } satisfies ReceiptAnswer) : problemReply(NOT_FOUND)
  } catch (error) {
    if (!(error instanceof TransientError || error instanceof PermanentError)) throw error
    deps.logger.warn({ error: describeError(error) }, 'a receipt could not be read')
    return problemReply(UNAVAILABLE)
  }
}

async function readerOf(deps: ApiDeps, { authorization, key }: Credential): Promise<Outcome<ReceiptReader>> {
  if (key === undefined) {
    const access = await deps.authenticate(authorization, RECEIPTS_GUARD)
    return access.ok ? { ok: true, value: { workspaceId: access.caller.workspaceId } } : access
  }
  const access = await askDirectory(surfaceKeyAccess(deps, key))
  if (!access.ok) return access
  const { workspaceId, surfaceId } = access.key
  return { ok: true, value: { workspaceId, surfaceId } }
}
