import { pageQuerySchema } from '../../schemas/http/page.ts'
import {
  createSurfaceKey,
  listSurfaceKeys,
  revokeSurfaceKey,
  updateSurfaceKey,
} from '../../schemas/http/workspaces/operations.ts'
import {
  type CreateSurfaceKey,
  createSurfaceKeySchema,
  type ListedSurfaceKey,
  type SurfaceKeyCreated,
  type SurfaceKeysPage,
  type SurfaceKeyUpdated,
  surfaceIdSchema,
  surfaceKeyIdSchema,
  type UpdateSurfaceKey,
  updateSurfaceKeySchema,
} from '../../schemas/http/workspaces/schemas.ts'
import type { KeyQuotas, SurfaceKey } from '../../schemas/records/directory.ts'
import { type Directory, newId } from '../../shared/directory/directory.ts'
import type { ListPage } from '../../shared/directory/sorted-index.ts'
import { type MakerState, SURFACE_KEYS_MAX, WORKSPACE_SURFACE_KEYS_MAX } from '../../shared/directory/surface-keys.ts'
import type { Route } from '../../shared/http/route.ts'
import { digestOf } from '../../shared/ids/credentials.ts'
import type { KeyUse } from '../../shared/queue/key-usage.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { authorOf, cutDirectoryPage, directoryPage, onceOf, queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import { conflict } from '../http/idempotency.ts'
import { invalid, type Outcome, okReply } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { idsOf, keyExpiry, keyPrefix, newKey, presentUse, repeatedKey } from './keys.ts'
import { SURFACE, SURFACE_KEY } from './resources.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<
    Directory,
    | 'surface'
    | 'surfaceKeys'
    | 'makerStates'
    | 'createSurfaceKey'
    | 'surfaceKey'
    | 'updateSurfaceKey'
    | 'revokeSurfaceKey'
  >
  /** Server secret from which, with the salt of each creation, the secrets of keys are derived. */
  readonly keyPepper: string
  readonly keyUse: (workspaceId: string, keyIds: readonly string[]) => Promise<KeyUse[]>
}

/** Returns the routes of the keys of a surface. */
export function surfaceKeyRoutes(deps: Deps): Route[] {
  return [
    listSurfaceKeysRoute(deps),
    createSurfaceKeyRoute(deps),
    updateSurfaceKeyRoute(deps),
    revokeSurfaceKeyRoute(deps),
  ]
}

/** Returns the route that lists the keys of a surface, newest first. */
function listSurfaceKeysRoute(deps: Deps): Route {
  const { directory } = deps
  return guardedRoute(deps, listSurfaceKeys, {
    resource: SURFACE,
    query: pageQuerySchema,
    async run({ workspaceId, param, query }): Promise<Outcome<SurfaceKeysPage>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const surfaceId = param('surfaceId')
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      const [surface, keys] = await Promise.all([
        queryDirectory(directory.surface(workspaceId, surfaceId)),
        queryDirectory(directory.surfaceKeys(workspaceId, surfaceId)),
      ])
      if (surface === undefined) return notFound(SURFACE)
      // A surface has at most SURFACE_KEYS_MAX keys, so all are read, and the page is cut out of them.
      const { shown, nextCursor } = cutDirectoryPage(keysAfter(keys, page.value.after), page.value)
      return { ok: true, value: { keys: await presentSurfaceKeys(deps, workspaceId, shown), nextCursor } }
    },
  })
}

function keysAfter(keys: readonly SurfaceKey[], last: ListPage['after']): readonly SurfaceKey[] {
  if (last === undefined) return keys
  return keys.filter(({ createdAt, id }) => {
    const createdAtMs = Date.parse(createdAt)
    return createdAtMs < last.createdAtMs || (createdAtMs === last.createdAtMs && id < last.id)
  })
}

const TOO_MANY_KEYS = invalid(
  `a surface can have at most ${SURFACE_KEYS_MAX} active keys, and a workspace at most ${WORKSPACE_SURFACE_KEYS_MAX}: revoke keys that are not used`,
)

/** Returns the route that creates a public or secret key of a surface. No other response contains the text of a secret key. */
function createSurfaceKeyRoute(deps: Deps): Route {
  const { directory, keyPepper } = deps
  return creationRoute(deps, createSurfaceKey, {
    resource: SURFACE,
    body: createSurfaceKeySchema,
    async create({ caller, body, param, creation }): Promise<Outcome<SurfaceKeyCreated>> {
      const surfaceId = param('surfaceId')
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      const { secret, salted } = newKey(body.kind, keyPepper, creation)
      const scopes = body.kind === 'secret' ? [...new Set(body.scopes)] : undefined
      const { workspaceId, userId, apiKeyId } = caller
      const createdBy = { userId, apiKeyId }
      const record = newRecord({ workspaceId, surfaceId, scopes: scopes ?? [], createdBy }, body, secret, deps.now())
      const { id, kind, name, expiresAt } = record
      const key = { id, kind, ...(name && { name }), ...(scopes && { scopes }), expiresAt, ...presentLimits(record) }
      const author = authorOf(
        caller,
        deps.now(),
        onceOf(salted, () => ({ surfaceId, key })),
      )
      const outcome = await queryDirectory(directory.createSurfaceKey(record, author))
      if (outcome === 'no_surface' || outcome === 'no_member') return notFound(SURFACE)
      return outcome === 'too_many_keys' ? TOO_MANY_KEYS : { ok: true, value: { key: { ...key, secret } } }
    },
    async repeat(earlier, body) {
      const { surfaceId, key } = earlier.answer as SurfaceKeyCreated & { surfaceId: string }
      const stored = await queryDirectory(directory.surfaceKey(earlier.workspaceId, surfaceId, key.id))
      const repeated = repeatedKey(body.kind, keyPepper, earlier, stored)
      return 'reason' in repeated
        ? conflict(body, repeated.reason)
        : { ok: true, value: { key: { ...key, ...repeated } } }
    },
  })
}

function newRecord(
  owner: Pick<SurfaceKey, 'workspaceId' | 'surfaceId' | 'scopes' | 'createdBy'>,
  request: CreateSurfaceKey,
  secret: string,
  nowMs: number,
): SurfaceKey {
  const { kind, name, secondsUntilExpiration = null, quotas } = request
  const allowedOrigins = request.kind === 'public' ? request.allowedOrigins : undefined
  return {
    version: 1,
    id: newId('key'),
    kind,
    digest: digestOf(secret),
    prefix: keyPrefix(secret),
    ...(name && { name }),
    ...(kind === 'public' && { publicKey: secret }),
    ...owner,
    createdAt: rfc3339FromUnixMs(nowMs),
    expiresAt: keyExpiry(nowMs, secondsUntilExpiration),
    revokedAt: null,
    ...(quotas && Object.keys(quotas).length > 0 && { quotas }),
    ...(allowedOrigins && { allowedOrigins }),
  }
}

const NO_ORIGINS = invalid('allowedOrigins must be left out: a secret key has none, because no page may use it')

/** Returns the route that changes the quotas and the allowed origins of a key of a surface (docs/api/credentials.md#quotas). */
function updateSurfaceKeyRoute(deps: Deps): Route {
  const { directory } = deps
  return creationRoute(deps, updateSurfaceKey, {
    resource: SURFACE,
    body: updateSurfaceKeySchema,
    reply: okReply,
    async create({ caller, body, param }): Promise<Outcome<SurfaceKeyUpdated>> {
      const { workspaceId } = caller
      const author = authorOf(caller, deps.now())
      const [surfaceId, keyId] = [param('surfaceId'), param('keyId')]
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      if (!surfaceKeyIdSchema.safeParse(keyId).success) return notFound(SURFACE_KEY)
      const known = await queryDirectory(directory.surfaceKey(workspaceId, surfaceId, keyId))
      if (known === undefined) return notFound(SURFACE_KEY)
      if (known.kind === 'secret' && body.allowedOrigins) return NO_ORIGINS
      const change = (key: SurfaceKey) => ({ quotas: changeQuotas(key.quotas, body.quotas), ...originsOf(body) })
      const key = await queryDirectory(directory.updateSurfaceKey(workspaceId, surfaceId, keyId, change, author))
      if (key === undefined) return notFound(SURFACE_KEY)
      const [shown] = await presentSurfaceKeys(deps, workspaceId, [key])
      return shown === undefined ? notFound(SURFACE_KEY) : { ok: true, value: { key: shown } }
    },
  })
}

/** Returns the quotas after a change. Null removes a quota or all of them, and absent ones stay. */
function changeQuotas(before: KeyQuotas = {}, change: UpdateSurfaceKey['quotas']): KeyQuotas {
  if (change === null) return {}
  const after = Object.entries({ ...before, ...change }).filter(([, quota]) => quota !== null && quota !== undefined)
  return Object.fromEntries(after)
}

function originsOf({ allowedOrigins }: UpdateSurfaceKey) {
  return allowedOrigins === undefined ? {} : { allowedOrigins }
}

/** Returns the route that revokes a key of a surface for good. Repeated requests return the same. */
function revokeSurfaceKeyRoute(deps: Deps): Route {
  return guardedRoute(deps, revokeSurfaceKey, {
    resource: SURFACE,
    async run({ caller, workspaceId, param }) {
      const [surfaceId, keyId] = [param('surfaceId'), param('keyId')]
      if (!surfaceIdSchema.safeParse(surfaceId).success) return notFound(SURFACE)
      if (!surfaceKeyIdSchema.safeParse(keyId).success) return notFound(SURFACE_KEY)
      const now = deps.now()
      const author = authorOf(caller, now)
      const outcome = await queryDirectory(deps.directory.revokeSurfaceKey(workspaceId, surfaceId, keyId, now, author))
      return outcome === 'revoked' ? { ok: true, value: { ok: true } } : notFound(SURFACE_KEY)
    },
  })
}

/** Returns keys of surfaces as lists show them. */
async function presentSurfaceKeys(
  { directory, keyUse, now }: Deps,
  workspaceId: string,
  keys: readonly SurfaceKey[],
): Promise<ListedSurfaceKey[]> {
  const [makers, uses] = await Promise.all([
    queryDirectory(directory.makerStates(workspaceId, keys, now())),
    queryDirectory(keyUse(workspaceId, idsOf(keys))),
  ])
  return keys.map((key, i) => ({ ...presentSurfaceKey(key, makers), usage: presentUse(uses[i]) }))
}

const NAMES = { public: 'Public key', secret: 'Secret key' } as const

/** Returns what the record of a key shows: of a public key also its text. `makers` are the states of API keys by their ids. */
function presentSurfaceKey(key: SurfaceKey, makers: ReadonlyMap<string, MakerState>) {
  const {
    id,
    kind,
    name = NAMES[kind],
    publicKey = null,
    prefix,
    scopes,
    createdAt,
    expiresAt,
    revokedAt,
    createdBy,
  } = key
  const apiKeyState = createdBy?.apiKeyId ? (makers.get(createdBy.apiKeyId) ?? 'removed') : null
  return {
    id,
    kind,
    name,
    publicKey,
    prefix: keyPrefix(prefix),
    scopes,
    createdAt,
    expiresAt,
    revokedAt,
    createdBy: createdBy ? { ...createdBy, apiKeyState } : null,
    ...presentLimits(key),
  }
}

/** Returns the quotas and allowed origins of a key, where it has some. */
function presentLimits({ quotas, allowedOrigins }: SurfaceKey): Pick<ListedSurfaceKey, 'quotas' | 'allowedOrigins'> {
  return { ...(quotas && { quotas }), ...(allowedOrigins && { allowedOrigins }) }
}
