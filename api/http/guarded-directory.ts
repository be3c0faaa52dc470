import type { z } from 'zod'
import type { Problem } from '../../schemas/http/problems.ts'
import type { Permission } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { bodyTypeFault, bodyTypeOf } from '../../shared/http/body-type.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { type Decision, problemReply, type Reply, type RequestHead } from '../../shared/http/route.ts'
import { describeError, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Authenticate, Caller, Guard } from '../auth/authenticate.ts'
import { invalid } from './parse-query.ts'
import { createdReply, jsonReply, type Outcome } from './reply.ts'

/** What the operations on workspaces, surfaces and keys need. */
export interface DirectoryDeps {
  readonly authenticate: Authenticate
  readonly directory: Directory
  /** What the secrets of workspace keys are derived with. */
  readonly keyPepper: string
  readonly logger: Logger
  readonly now: () => number
}

/** How one of them is guarded, and which workspace its path names. */
export interface DirectoryCall {
  readonly guard: Guard
  readonly workspaceSlug?: string
}

export const DIRECTORY_BODY_LIMIT_BYTES = 256 * 1024
export const DIRECTORY_OVER_LIMIT: Problem = {
  code: 'REQUEST_INVALID',
  status: 413,
  message: 'the body is over the limit of 256 KiB',
  service: 'operation',
}

/** Checks the credential, then operates in the caller's workspace; a directory that is away is `guard.unavailable`. */
export async function guardedDirectory<T>(
  deps: DirectoryDeps,
  head: RequestHead,
  { guard, workspaceSlug }: DirectoryCall,
  operate: (caller: Caller) => Promise<Outcome<T>>,
): Promise<Reply> {
  const access = await deps.authenticate(head.header('authorization'), guard, workspaceSlug)
  return access.ok ? settle(deps, guard, operate(access.caller), jsonReply) : problemReply(access.problem)
}

/**
 * The same for what is made of a JSON body: 201. The body counts only once the credential has been accepted, and once it is
 * whole the credential is checked again: it may come so slowly that it outlives what was accepted.
 */
export async function guardedCreation<S extends z.ZodType, T>(
  deps: DirectoryDeps,
  head: RequestHead,
  { guard, workspaceSlug }: DirectoryCall,
  schema: S,
  create: (caller: Caller, body: z.infer<S>) => Promise<Outcome<T>>,
): Promise<Decision> {
  const type = bodyTypeOf(head)
  const authorization = head.header('authorization')
  const accepted = await deps.authenticate(authorization, guard, workspaceSlug)
  if (!accepted.ok) return problemReply(accepted.problem)
  return async body => {
    const typeFault = bodyTypeFault(type, ['application/json'])
    if (typeFault) return problemReply({ ...typeFault, service: 'operation' })
    const parsed = parseJsonBody(schema, body)
    if (!parsed.ok) return problemReply(invalid(parsed.fault, 'operation').problem)
    const access = await deps.authenticate(authorization, guard, workspaceSlug)
    if (!access.ok) return problemReply(access.problem)
    return settle(deps, guard, create(access.caller, parsed.value), createdReply)
  }
}

async function settle<T>(
  { logger }: DirectoryDeps,
  guard: Guard,
  operation: Promise<Outcome<T>>,
  reply: (value: T) => Reply,
): Promise<Reply> {
  try {
    const outcome = await operation
    return outcome.ok ? reply(outcome.value) : problemReply(outcome.problem)
  } catch (error) {
    if (!(error instanceof TransientError || error instanceof PermanentError)) throw error
    logger.warn({ error: describeError(error) }, 'an operation on the directory failed')
    return problemReply(guard.unavailable)
  }
}

const UNAVAILABLE: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'workspaces and keys cannot be read or changed at the moment',
  service: 'operation',
  retryAfterSeconds: 5,
}

const WORKSPACE_NOT_FOUND: Problem = { code: 'NOT_FOUND', message: 'there is no such workspace' }
const SURFACE_NOT_FOUND: Problem = { code: 'NOT_FOUND', message: 'there is no such surface' }

export const surfaceNotFound = { ok: false, problem: SURFACE_NOT_FOUND } as const
export const surfaceKeyNotFound = {
  ok: false,
  problem: { code: 'NOT_FOUND', message: 'there is no such key of this surface' },
} as const
export const apiKeyNotFound = {
  ok: false,
  problem: { code: 'NOT_FOUND', message: 'there is no such API key' },
} as const

/** The guard of operations on all surfaces of a workspace. */
export function surfacesGuard(permission: Permission): Guard {
  return { permission, takesWorkspaceKeys: true, notFound: WORKSPACE_NOT_FOUND, unavailable: UNAVAILABLE }
}

/** The guard of operations on one surface, and on its keys. */
export function surfaceGuard(permission: Permission): Guard {
  return { ...surfacesGuard(permission), notFound: SURFACE_NOT_FOUND }
}

/** The guard of 4.10, 4.11 and the list of workspace keys: only a signed-in user has this permission. */
export const WORKSPACE_KEYS_GUARD: Guard = {
  permission: 'org:workspace_auth:write',
  notFound: WORKSPACE_NOT_FOUND,
  unavailable: UNAVAILABLE,
}
