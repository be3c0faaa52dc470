import { randomBytes } from 'node:crypto'
import { createWorkspaceKey, listWorkspaceKeys, revokeWorkspaceKey } from '../../schemas/http/workspaces/operations.ts'
import {
  apiKeyIdSchema,
  type CreateWorkspaceKey,
  createWorkspaceKeySchema,
  type ListedWorkspaceKey,
  type WorkspaceKeyCreated,
  type WorkspaceKeysPage,
} from '../../schemas/http/workspaces/schemas.ts'
import { type Permission, permissionSchema, type WorkspaceKey } from '../../schemas/records/directory.ts'
import { type Directory, newId } from '../../shared/directory/directory.ts'
import { WORKSPACE_KEYS_MAX } from '../../shared/directory/workspace-keys.ts'
import type { Route } from '../../shared/http/route.ts'
import { digestOf } from '../../shared/ids/credentials.ts'
import type { Caller } from '../auth/caller.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { authorOf, directoryListRoute, queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { deriveWorkspaceKey, keyExpiry, keyPrefix } from './keys.ts'
import { API_KEY, WORKSPACE } from './resources.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'workspaceKeys' | 'createWorkspaceKey' | 'revokeWorkspaceKey'>
  /** Server secret from which, with the salt of each key, the secrets of workspace keys are derived. */
  readonly keyPepper: string
  readonly now: () => number
}

/** Returns the routes of the API keys of a workspace. */
export function workspaceKeyRoutes(deps: Deps): Route[] {
  return [listWorkspaceKeysRoute(deps), createWorkspaceKeyRoute(deps), revokeWorkspaceKeyRoute(deps)]
}

/**
 * Returns the route that lists the API keys of a workspace without their secrets, newest first
 * (docs/api/workspaces.md#list-keys).
 */
function listWorkspaceKeysRoute(deps: Deps): Route {
  return directoryListRoute(deps, listWorkspaceKeys, {
    resource: WORKSPACE,
    read: (workspaceId, page) => deps.directory.workspaceKeys(workspaceId, page),
    present: (shown, nextCursor): WorkspaceKeysPage => ({ apiKeys: shown.map(presentWorkspaceKey), nextCursor }),
  })
}

const SALT_BYTES = 32
const TOO_MANY_KEYS = invalid(
  `a workspace can have at most ${WORKSPACE_KEYS_MAX} API keys: revoke keys that are not used; they make room 24 h after their creation`,
)

/**
 * Returns the route that creates an API key of a workspace. Within 24 h the same request gets the same response again
 * (docs/api/workspaces.md#create-key).
 */
function createWorkspaceKeyRoute(deps: Deps): Route {
  return creationRoute(deps, createWorkspaceKey, {
    resource: WORKSPACE,
    body: createWorkspaceKeySchema,
    create: ({ caller, body }) => createOrRepeat(deps, caller, body),
  })
}

async function createOrRepeat(
  { directory, keyPepper, now }: Deps,
  caller: Caller,
  request: CreateWorkspaceKey,
): Promise<Outcome<WorkspaceKeyCreated>> {
  const lacking = [...new Set(request.scopes)].filter(scope => !isPermitted(caller, scope))
  if (lacking.length > 0) {
    const message = `scopes must be permissions that you have yourself; you do not have ${lacking.join(', ')}`
    return { ok: false, problem: { code: 'PERMISSION_DENIED', message } }
  }
  const nowMs = now()
  const created = newWorkspaceKey(keyPepper, caller, request, nowMs)
  const author = authorOf(caller, nowMs)
  const { outcome, key } = await queryDirectory(directory.createWorkspaceKey(created.record, author))
  if (outcome === 'too_many_keys') return TOO_MANY_KEYS
  if (outcome === 'created') return { ok: true, value: presentCreated(key, created.secret) }

  const difference = differenceOf(key, created.record)
  if (difference) return conflict(difference)
  const { workspaceId, createdBy: userId, idempotencyKey } = key
  const secret = deriveWorkspaceKey(keyPepper, key.salt, { workspaceId, userId, idempotencyKey })
  if (digestOf(secret) !== key.digest) return conflict('was used before the KEY_PEPPER of the server changed')
  return { ok: true, value: presentCreated(key, secret) }
}

function isPermitted({ permissions }: Caller, scope: string): scope is Permission {
  return permissions.has(scope as Permission)
}

function newWorkspaceKey(
  pepper: string,
  { workspaceId, userId }: Caller,
  { idempotencyKey, name, scopes, secondsUntilExpiration }: CreateWorkspaceKey,
  nowMs: number,
): { record: WorkspaceKey; secret: string } {
  const salt = randomBytes(SALT_BYTES).toString('hex')
  const secret = deriveWorkspaceKey(pepper, salt, { workspaceId, userId, idempotencyKey })
  const record: WorkspaceKey = {
    version: 1,
    id: newId('key'),
    workspaceId,
    name,
    scopes: [...new Set(permissionSchema.array().parse(scopes))],
    digest: digestOf(secret),
    prefix: keyPrefix(secret),
    salt,
    createdBy: userId,
    idempotencyKey,
    createdAt: rfc3339FromUnixMs(nowMs),
    expiresAt: keyExpiry(nowMs, secondsUntilExpiration),
    revokedAt: null,
    secondsUntilExpiration,
  }
  return { record, secret }
}

/** Returns why a request is not the one that created the stored key, in text that follows `idempotencyKey`. */
function differenceOf(stored: WorkspaceKey, requested: WorkspaceKey): string | undefined {
  if (stored.name !== requested.name) return 'was used with another name'
  const scopes = new Set(requested.scopes)
  if (stored.scopes.length !== scopes.size || !stored.scopes.every(scope => scopes.has(scope))) {
    return 'was used with other scopes'
  }
  if (stored.secondsUntilExpiration !== requested.secondsUntilExpiration) {
    return 'was used with another secondsUntilExpiration'
  }
  return stored.revokedAt === null ? undefined : 'belongs to a key that is revoked'
}

function conflict(reason: string): Outcome<never> {
  return { ok: false, problem: { code: 'IDEMPOTENCY_CONFLICT', message: `idempotencyKey ${reason}` } }
}

function presentCreated(key: WorkspaceKey, secret: string): WorkspaceKeyCreated {
  const { id, name, scopes, createdAt, expiresAt } = key
  return { apiKey: { id, name, scopes, createdAt, expiresAt, secret } }
}

/**
 * Returns the route that revokes an API key of a workspace for good, whichever member created it. Repeated requests return
 * the same (docs/api/workspaces.md#revoke-key).
 */
function revokeWorkspaceKeyRoute(deps: Deps): Route {
  return guardedRoute(deps, revokeWorkspaceKey, {
    resource: WORKSPACE,
    async run({ caller, workspaceId, param }) {
      const keyId = param('apiKeyId')
      if (!apiKeyIdSchema.safeParse(keyId).success) return notFound(API_KEY)
      const now = deps.now()
      const author = authorOf(caller, now)
      const outcome = await queryDirectory(deps.directory.revokeWorkspaceKey(workspaceId, keyId, now, author))
      return outcome === 'revoked' ? { ok: true, value: { ok: true } } : notFound(API_KEY)
    },
  })
}

/** Returns an API key of a workspace as lists show it: without its secret. */
function presentWorkspaceKey(key: WorkspaceKey): ListedWorkspaceKey {
  const { id, name, prefix, scopes, createdBy, createdAt, expiresAt, revokedAt } = key
  return { id, name, prefix: keyPrefix(prefix), scopes, createdBy, createdAt, expiresAt, revokedAt }
}
