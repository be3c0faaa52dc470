import { randomBytes } from 'node:crypto'
import {
  type CreateWorkspaceKey,
  createWorkspaceKeySchema,
  type WorkspaceKeyCreated,
} from '../../schemas/http/workspaces/schemas.ts'
import { type Permission, permissionSchema, type WorkspaceKey } from '../../schemas/records/directory.ts'
import { newId } from '../../shared/directory/directory.ts'
import { WORKSPACE_KEYS_MAX } from '../../shared/directory/workspace-keys.ts'
import type { Route } from '../../shared/http/route.ts'
import { digestOf } from '../../shared/ids/credentials.ts'
import type { Caller } from '../auth/authenticate.ts'
import { askDirectory } from '../http/ask-directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import {
  DIRECTORY_BODY_LIMIT_BYTES,
  DIRECTORY_OVER_LIMIT,
  type DirectoryDeps,
  guardedCreation,
  WORKSPACE_KEYS_GUARD,
} from '../http/guarded-directory.ts'
import { invalid } from '../http/parse-query.ts'
import type { Outcome } from '../http/reply.ts'
import { deriveWorkspaceKey } from './derive-workspace-key.ts'
import { keyExpiry } from './key-expiry.ts'
import { keyPrefix } from './present-workspace.ts'

const SALT_BYTES = 32
const TOO_MANY_KEYS = invalid(
  `the workspace must have at most ${WORKSPACE_KEYS_MAX} API keys, revoked and expired ones too`,
  'operation',
)

/** 4.10: makes a workspace key, or answers again what the same request was answered within the last 24 h. */
export function createWorkspaceKeyRoute(deps: DirectoryDeps): Route {
  return {
    method: 'POST',
    path: '/v3/workspaces/:workspaceSlug/api-keys',
    bodyLimitBytes: DIRECTORY_BODY_LIMIT_BYTES,
    overLimit: DIRECTORY_OVER_LIMIT,
    accept(head) {
      const call = { guard: WORKSPACE_KEYS_GUARD, workspaceSlug: head.param('workspaceSlug') }
      return guardedCreation(deps, head, call, createWorkspaceKeySchema, (caller, body) =>
        createWorkspaceKey(deps, caller, body),
      )
    },
  }
}

async function createWorkspaceKey(
  { directory, keyPepper, now }: DirectoryDeps,
  caller: Caller,
  asked: CreateWorkspaceKey,
): Promise<Outcome<WorkspaceKeyCreated>> {
  const lacking = [...new Set(asked.scopes)].filter(scope => !isHeld(caller, scope))
  if (lacking.length > 0) {
    const message = `scopes must be among your own permissions, and these are not: ${lacking.join(', ')}`
    return { ok: false, problem: { code: 'PERMISSION_DENIED', message } }
  }
  const made = newWorkspaceKey(keyPepper, caller, asked, now())
  const { outcome, key } = await askDirectory(directory.createWorkspaceKey(made.record))
  if (outcome === 'too_many_keys') return TOO_MANY_KEYS
  if (outcome === 'created') return { ok: true, value: presentCreated(key, made.secret) }

  const difference = differenceOf(key, made.record)
  if (difference) return conflict(difference)
  const secret = deriveWorkspaceKey(keyPepper, key.salt, originOf(key))
  if (digestOf(secret) !== key.digest) return conflict('was used before the server got another KEY_PEPPER')
  return { ok: true, value: presentCreated(key, secret) }
}

function isHeld({ permissions }: Caller, scope: string): scope is Permission {
  return permissions.has(scope as Permission)
}

function newWorkspaceKey(
  pepper: string,
  { workspaceId, userId }: Caller,
  asked: CreateWorkspaceKey,
  nowMs: number,
): { record: WorkspaceKey; secret: string } {
  const { idempotencyKey, name, secondsUntilExpiration } = asked
  const salt = randomBytes(SALT_BYTES).toString('hex')
  const secret = deriveWorkspaceKey(pepper, salt, { workspaceId, userId, idempotencyKey })
  const record: WorkspaceKey = {
    version: 1,
    id: newId('key'),
    workspaceId,
    name,
    scopes: [...new Set(permissionSchema.array().parse(asked.scopes))],
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

const originOf = ({ workspaceId, createdBy, idempotencyKey }: WorkspaceKey) => ({
  workspaceId,
  userId: createdBy,
  idempotencyKey,
})

/** Why a request is not the one that the key was made by, said of its idempotency key. */
function differenceOf(stored: WorkspaceKey, asked: WorkspaceKey): string | undefined {
  if (stored.name !== asked.name) return 'was used with another name'
  const scopes = new Set(asked.scopes)
  if (stored.scopes.length !== scopes.size || !stored.scopes.every(scope => scopes.has(scope))) {
    return 'was used with other scopes'
  }
  if (stored.secondsUntilExpiration !== asked.secondsUntilExpiration) {
    return 'was used with another secondsUntilExpiration'
  }
  return stored.revokedAt === null ? undefined : 'is of a key that has been revoked'
}

function conflict(reason: string): Outcome<never> {
  return { ok: false, problem: { code: 'IDEMPOTENCY_CONFLICT', message: `idempotencyKey ${reason}` } }
}

function presentCreated(key: WorkspaceKey, secret: string): WorkspaceKeyCreated {
  const { id, name, scopes, createdAt, expiresAt } = key
  return { apiKey: { id, name, scopes, createdAt, expiresAt, secret } }
}
