import {
  type CreateErasure,
  createErasure,
  createErasureSchema,
  type ErasureAnswer,
  type ErasuresPage,
  erasureIdSchema,
  listErasures,
  readErasure,
  type ShownErasure,
} from '../schemas/http/privacy/erasures.ts'
import type { Workspace } from '../schemas/records/directory.ts'
import { STAYING, STAYING_KINDS } from '../schemas/records/erased-places.ts'
import type { Erasure, ErasureSubject } from '../schemas/records/erasure.ts'
import { DAY_MS } from '../schemas/units.ts'
import type { Directory } from '../shared/directory/directory.ts'
import { ACTIVE_ERASURES_MAX, ERASURES_KEPT } from '../shared/directory/erasures.ts'
import type { Route } from '../shared/http/route.ts'
import { keptDays } from '../shared/runtime/retention.ts'
import { type CreationRouteDeps, creationRoute } from './http/creation-route.ts'
import { authorOf, directoryListRoute, onceOf, queryDirectory } from './http/directory.ts'
import { type GuardedRouteDeps, guardedRoute } from './http/guarded-route.ts'
import { invalid, type Outcome } from './http/outcome.ts'
import { notFound, type Resource } from './http/resource.ts'

interface Deps extends CreationRouteDeps, GuardedRouteDeps {
  readonly directory: Pick<Directory, 'createErasure' | 'erasures' | 'erasure' | 'workspaceById'>
  readonly retentionDays: number
}

/** Returns the routes of erasures (docs/api/retention.md#erasures). */
export function erasureRoutes(deps: Deps): Route[] {
  return [createErasureRoute(deps), listErasuresRoute(deps), readErasureRoute(deps)]
}

const TOO_MANY = `the workspace has ${ACTIVE_ERASURES_MAX} erasures that are deleting, which is the maximum: send it again when one has deleted everything`

const TOO_MANY_WAITING = `the workspace has ${ERASURES_KEPT} erasures that wait for the night, which is the maximum: send it again tomorrow`

/** Returns the route that erases a person or a session (docs/api/retention.md#erasures). */
function createErasureRoute(deps: Deps): Route {
  return creationRoute(deps, createErasure, {
    resource: ERASURE,
    body: createErasureSchema,
    async create({ caller, body, creation }): Promise<Outcome<ErasureAnswer>> {
      const { workspaceId } = caller
      const now = deps.now()
      const workspace = await queryDirectory(deps.directory.workspaceById(workspaceId))
      const answerOf = (erasure: unknown) => presentAnswer(deps, erasure as Erasure, workspace)
      const author = authorOf(caller, now, onceOf(creation, answerOf))
      const request = { workspaceId, subject: subjectOf(body), now, author }
      const erasure = await queryDirectory(deps.directory.createErasure(request))
      if (erasure === 'too_many_erasures') return invalid(TOO_MANY)
      if (erasure === 'too_many_waiting') return invalid(TOO_MANY_WAITING)
      return { ok: true, value: answerOf(erasure) }
    },
  })
}

function subjectOf({ identifier, sourceType, sessionId }: CreateErasure): ErasureSubject {
  if (identifier === undefined) return { kind: 'session', sessionId: sessionId ?? '' }
  return { kind: 'identifier', identifier, ...(sourceType !== undefined && { sourceType }) }
}

/** Returns the route that lists the erasures of a workspace, newest first (docs/api/retention.md#erasures). */
function listErasuresRoute(deps: Deps): Route {
  return directoryListRoute(deps, listErasures, {
    resource: ERASURE,
    read: (workspaceId, page) => deps.directory.erasures(workspaceId, page),
    present: (shown, nextCursor): ErasuresPage => ({ erasures: shown.map(presentErasure), nextCursor }),
  })
}

/** Returns the route that reads an erasure and its receipt (docs/api/retention.md#erasures). */
function readErasureRoute(deps: Deps): Route {
  return guardedRoute(deps, readErasure, {
    resource: ERASURE,
    async run({ workspaceId, param }): Promise<Outcome<ErasureAnswer>> {
      const id = param('erasureId')
      if (!erasureIdSchema.safeParse(id).success) return notFound(ERASURE)
      const erasure = await queryDirectory(deps.directory.erasure(workspaceId, id))
      if (erasure === undefined) return notFound(ERASURE)
      const workspace = await queryDirectory(deps.directory.workspaceById(workspaceId))
      return { ok: true, value: presentAnswer(deps, erasure, workspace) }
    },
  })
}

/** One erasure of a workspace. */
const ERASURE: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such erasure' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'erasures are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/**
 * Presents an erasure with what it leaves. Until it has deleted everything, what is accepted may name the person, so the time
 * counts from now.
 */
function presentAnswer(
  { retentionDays, now }: Deps,
  erasure: Erasure,
  workspace: Pick<Workspace, 'retention'> | undefined,
): ErasureAnswer {
  const { completedAt } = erasure
  if (erasure.state === 'failed') return { erasure: presentErasure(erasure), remains: [] }
  const fromMs = completedAt === null ? now() : Date.parse(completedAt)
  const remains = STAYING_KINDS.map(what => {
    const { endsWith, description } = STAYING[what]
    const days = endsWith.map(kind => keptDays(workspace?.retention, kind, retentionDays))
    const firstDayWithout = Math.floor(fromMs / DAY_MS) + Math.max(...days)
    return { what, until: days.length === 0 ? null : new Date(firstDayWithout * DAY_MS).toISOString(), description }
  })
  return { erasure: presentErasure(erasure), remains }
}

/** Presents an erasure without its subject (docs/api/retention.md#erasures). */
function presentErasure(erasure: Erasure): ShownErasure {
  const { id, kind, subjectHash, state, failure, createdAt, createdBy, completedAt } = erasure
  const { sessions, rows, comments, objects, objectBytes } = erasure
  const receipt = { sessions, rows, comments, objects, objectBytes }
  return { id, kind, subjectHash, state, failure, createdAt, createdBy, completedAt, ...receipt }
}
