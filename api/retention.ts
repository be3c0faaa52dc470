import {
  type ReplaceRetention,
  type RetentionAnswer,
  readRetention,
  replaceRetention,
  replaceRetentionSchema,
} from '../schemas/http/privacy/retention.ts'
import { RETAINED_KINDS, type Retention, type Workspace } from '../schemas/records/directory.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { Route } from '../shared/http/route.ts'
import { setBounded } from '../shared/memory/bounded-map.ts'
import { keptDays, retentionFault, sessionsFault } from '../shared/runtime/retention.ts'
import { type CreationRouteDeps, creationRoute } from './http/creation-route.ts'
import { authorOf, queryDirectory } from './http/directory.ts'
import { type GuardedRouteDeps, guardedRoute } from './http/guarded-route.ts'
import { invalid, type Outcome, okReply } from './http/outcome.ts'
import { notFound, type Resource } from './http/resource.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'workspaceById' | 'changeRetention'>
  readonly now: () => number
  readonly retentionDays: number
}

/** Returns the routes of the retention of a workspace (docs/api/retention.md#retention). */
export function retentionRoutes(deps: Deps): Route[] {
  return [readRetentionRoute(deps), replaceRetentionRoute(deps)]
}

/** The retention of a workspace. */
const RETENTION: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the retention of workspaces is unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** Returns the route that reads how long data is kept (docs/api/retention.md#retention). */
function readRetentionRoute(deps: Deps): Route {
  return guardedRoute(deps, readRetention, {
    resource: RETENTION,
    async run({ workspaceId }): Promise<Outcome<RetentionAnswer>> {
      const workspace = await queryDirectory(deps.directory.workspaceById(workspaceId))
      if (workspace === undefined) return notFound(RETENTION)
      return { ok: true, value: presentRetention(workspace, deps.retentionDays) }
    },
  })
}

/** Returns the route that replaces how long data is kept (docs/api/retention.md#retention). */
function replaceRetentionRoute(deps: Deps): Route {
  const { directory, retentionDays } = deps
  return creationRoute(deps, replaceRetention, {
    resource: RETENTION,
    body: replaceRetentionSchema,
    reply: okReply,
    async create({ caller, body }): Promise<Outcome<RetentionAnswer>> {
      const retention = withoutNulls(body)
      const fault = retentionFault(retention, retentionDays) ?? sessionsFault(retention, retentionDays)
      if (fault !== undefined) return invalid(fault)
      const author = authorOf(caller, deps.now())
      const workspace = await queryDirectory(directory.changeRetention(caller.workspaceId, () => retention, author))
      return workspace ? { ok: true, value: presentRetention(workspace, retentionDays) } : notFound(RETENTION)
    },
  })
}

function withoutNulls(body: ReplaceRetention): Retention {
  return Object.fromEntries(Object.entries(body).filter(([, days]) => days !== null && days !== undefined))
}

/** Presents how long each kind of data of a workspace is kept (docs/api/retention.md#retention). */
function presentRetention({ retention = {} }: Workspace, installationDays: number): RetentionAnswer {
  const kinds = RETAINED_KINDS.map(kind => {
    const days = kind === 'releases' ? (retention.releases ?? null) : keptDays(retention, kind, installationDays)
    return [kind, { days, isDefault: retention[kind] === undefined }]
  })
  return { retention: { maxDays: installationDays, kinds: Object.fromEntries(kinds) } }
}

/** Time until a changed retention applies to reads (docs/api/retention.md#retention). */
const LIFETIME_MS = 10_000
const WORKSPACES_MAX = 10_000

/** Returns a function that reads the retention of a workspace from the directory, at most every LIFETIME_MS. */
export function cachedRetention(
  directory: Pick<Directory, 'workspaceById'>,
  now: () => number,
): (workspaceId: string) => Promise<Retention | undefined> {
  const cache = new Map<string, { readonly retention: Retention | undefined; readonly readAt: number }>()
  return async workspaceId => {
    const cached = cache.get(workspaceId)
    const readAt = now()
    if (cached && readAt - cached.readAt < LIFETIME_MS) return cached.retention
    const workspace = await queryDirectory(directory.workspaceById(workspaceId))
    setBounded(cache, WORKSPACES_MAX, workspaceId, { retention: workspace?.retention, readAt })
    return workspace?.retention
  }
}
