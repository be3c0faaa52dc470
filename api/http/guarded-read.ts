import type { Problem } from '../../schemas/http/problems.ts'
import { problemReply, type Reply } from '../../shared/http/route.ts'
import { describeError, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Guard } from '../auth/authenticate.ts'
import type { ApiDeps } from '../routes.ts'
import { jsonReply, type Outcome } from './reply.ts'

/** One read on behalf of the bearer of a token, within its workspace and one deadline. */
export type Read<T> = (workspaceId: string, signal: AbortSignal) => Promise<Outcome<T>>

export type GuardedReadDeps = Pick<ApiDeps, 'authenticate' | 'logger' | 'queryTimeoutMs'>

/** Checks the credential, then reads; an unreachable store is answered as `guard.unavailable`. */
export async function guardedRead<T>(
  { authenticate, logger, queryTimeoutMs }: GuardedReadDeps,
  authorization: string | undefined,
  guard: Guard,
  read: Read<T>,
  reply: (value: T) => Reply = jsonReply,
): Promise<Reply> {
  const signal = AbortSignal.timeout(queryTimeoutMs)
  const access = await authenticate(authorization, guard)
  if (!access.ok) return problemReply(access.problem)
  try {
    const outcome = await read(access.caller.workspaceId, signal)
    return outcome.ok ? reply(outcome.value) : problemReply(outcome.problem)
  } catch (error) {
    if (!(error instanceof TransientError || error instanceof PermanentError)) throw error
    logger.warn({ error: describeError(error), problem: guard.unavailable.code }, 'a read failed')
    return problemReply(guard.unavailable)
  }
}

const FINDING_NOT_FOUND: Problem = {
  code: 'FINDING_NOT_FOUND',
  message: 'there is no such finding, or nothing of what is asked for is retained',
}

/** The guard of everything that is read of findings. All that a caller may not know of looks the same. */
export const FINDINGS_GUARD: Guard = {
  permission: 'org:findings:read',
  notFound: FINDING_NOT_FOUND,
  unavailable: {
    code: 'FINDING_CONTEXT_QUERY_FAILED',
    message: 'the findings cannot be read at the moment',
    retryAfterSeconds: 5,
  },
}

export const findingNotFound = { ok: false, problem: FINDING_NOT_FOUND } as const

const SESSION_NOT_FOUND: Problem = {
  code: 'NOT_FOUND',
  message: 'there is no such session, or nothing of it is retained',
}

/** The guard of everything that is read of sessions. */
export const SESSIONS_GUARD: Guard = {
  permission: 'org:sessions:read',
  notFound: SESSION_NOT_FOUND,
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'sessions cannot be read at the moment',
    service: 'api-analytics',
    retryAfterSeconds: 5,
  },
}

export const sessionNotFound = { ok: false, problem: SESSION_NOT_FOUND } as const

const RELEASE_NOT_FOUND: Problem = { code: 'RELEASE_NOT_FOUND', message: 'there is no such release' }

/** The guard of everything that is read of releases. */
export const RELEASES_GUARD: Guard = {
  permission: 'org:releases:read',
  notFound: RELEASE_NOT_FOUND,
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'releases cannot be read at the moment',
    service: 'api-analytics',
    retryAfterSeconds: 5,
  },
}

export const releaseNotFound = { ok: false, problem: RELEASE_NOT_FOUND } as const
