import { createWorkspaceKey, listWorkspaceKeys, revokeWorkspaceKey } from '../../schemas/http/workspaces/operations.ts'
import {
  apiKeyIdSchema,
  type CreateWorkspaceKey,
  createWorkspaceKeySchema,
  type ListedWorkspaceKey,
  type WorkspaceKeyCreated,
  type WorkspaceKeysPage,
} from '../../schemas/http/workspaces/schemas.ts'
import type { Creation } from '../../schemas/records/creation.ts'
import type { WorkspaceKey } from '../../schemas/records/directory.ts'
import { type Directory, newId } from '../../shared/directory/directory.ts'
import { WORKSPACE_KEYS_MAX } from '../../shared/directory/workspace-keys.ts'
import type { Route } from '../../shared/http/route.ts'
import { digestOf } from '../../shared/ids/credentials.ts'
import type { KeyUse } from '../../shared/queue/key-usage.ts'
import type { Caller } from '../auth/caller.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { authorOf, directoryListRoute, onceOf, queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { conflict } from '../http/idempotency.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { idsOf, keyExpiry, keyPrefix, newKey, presentUse, repeatedKey } from './keys.ts'
import { API_KEY, WORKSPACE } from './resources.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'workspaceKey' | 'workspaceKeys' | 'createWorkspaceKey' | 'revokeWorkspaceKey'>
  readonly keyUse: (workspaceId: string, keyIds: readonly string[]) => Promise<KeyUse[]>
  /** Server secret from which, with the salt of each creation, the secrets of keys are derived. */
  readonly keyPepper: string
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
    async present(shown, nextCursor, workspaceId): Promise<WorkspaceKeysPage> {
      const uses = await queryDirectory(deps.keyUse(workspaceId, idsOf(shown)))
      return { apiKeys: shown.map((key, i) => presentWorkspaceKey(key, uses[i])), nextCursor }
    },
  })
}

const TOO_MANY_KEYS = invalid(
  `a workspace can have at most ${WORKSPACE_KEYS_MAX} API keys: revoke keys that are not used`,
)

/**
 * Returns the route that creates an API key of a workspace. Within 24 h the same request gets the same response again
 * (docs/api/workspaces.md#create-key).
 */
function createWorkspaceKeyRoute({ directory, keyPepper, now, ...deps }: Deps): Route {
  return creationRoute({ ...deps, now }, createWorkspaceKey, {
    resource: WORKSPACE,
    body: createWorkspaceKeySchema,
    async create({ caller, body, creation }): Promise<Outcome<WorkspaceKeyCreated>> {
      const lacking = [...new Set(body.scopes)].filter(scope => !caller.permissions.has(scope))
      if (lacking.length > 0) {
        const message = `scopes must be permissions that you have yourself; you do not have ${lacking.join(', ')}`
        return { ok: false, problem: { code: 'PERMISSION_DENIED', message } }
      }
      const nowMs = now()
      const { secret, salted } = newKey('workspace', keyPepper, creation)
      const record = newRecord(caller, body, secret, nowMs)
      const apiKey = presentCreated(record)
      const author = authorOf(
        caller,
        nowMs,
        onceOf(salted, () => ({ apiKey })),
      )
      const outcome = await queryDirectory(directory.createWorkspaceKey(record, author))
      if (outcome === 'no_member') return notFound(WORKSPACE)
      return outcome === 'created' ? { ok: true, value: { apiKey: { ...apiKey, secret } } } : TOO_MANY_KEYS
    },
    async repeat(earlier, body) {
      const { apiKey } = earlier.answer as { apiKey: ReturnType<typeof presentCreated> }
      const key = await queryDirectory(directory.workspaceKey(earlier.workspaceId, apiKey.id))
      const repeated = repeatedKey('workspace', keyPepper, earlier, key)
      if ('reason' in repeated) return conflict(body, repeated.reason)
      return { ok: true, value: { apiKey: { ...apiKey, ...repeated } } }
    },
    difference,
  })
}

function newRecord(
  { workspaceId, userId }: Caller,
  { name, scopes, secondsUntilExpiration }: CreateWorkspaceKey,
  secret: string,
  nowMs: number,
): WorkspaceKey {
  return {
    version: 1,
    id: newId('key'),
    workspaceId,
    name,
    scopes: [...new Set(scopes)],
    digest: digestOf(secret),
    prefix: keyPrefix(secret),
    createdBy: userId,
    createdAt: rfc3339FromUnixMs(nowMs),
    expiresAt: keyExpiry(nowMs, secondsUntilExpiration),
    revokedAt: null,
  }
}

/** Returns how a request is not the one that created the earlier key, in text that follows its idempotency key. */
function difference({ answer }: Creation, { name, scopes }: CreateWorkspaceKey): string {
  const { apiKey } = answer as { apiKey: ReturnType<typeof presentCreated> }
  if (apiKey.name !== name) return 'was used with another name'
  const asked = new Set(scopes)
  const hasSame = apiKey.scopes.length === asked.size && apiKey.scopes.every(scope => asked.has(scope))
  return `was used with ${hasSame ? 'another secondsUntilExpiration' : 'other scopes'}`
}

/** Returns a new key as its response shows it, without its secret. */
function presentCreated({ id, name, scopes, createdAt, expiresAt }: WorkspaceKey) {
  return { id, name, scopes, createdAt, expiresAt }
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
function presentWorkspaceKey(key: WorkspaceKey, use: KeyUse | undefined): ListedWorkspaceKey {
  const { id, name, prefix, scopes, createdBy, createdAt, expiresAt, revokedAt } = key
  const actor = { userId: createdBy, apiKeyId: null }
  return {
    id,
    name,
    prefix: keyPrefix(prefix),
    scopes,
    createdBy: actor,
    createdAt,
    expiresAt,
    revokedAt,
    usage: presentUse(use),
  }
}
