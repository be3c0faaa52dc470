import {
  type DroppingAnswer,
  readDropping,
  replaceDropping,
  replaceDroppingSchema,
} from '../schemas/http/privacy/dropping.ts'
import type { Dropping } from '../schemas/records/dropping.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { Route } from '../shared/http/route.ts'
import { type CreationRouteDeps, creationRoute } from './http/creation-route.ts'
import { authorOf, queryDirectory } from './http/directory.ts'
import { type GuardedRouteDeps, guardedRoute } from './http/guarded-route.ts'
import { type Outcome, okReply, otherRevision } from './http/outcome.ts'
import type { Resource } from './http/resource.ts'

interface Deps extends GuardedRouteDeps, CreationRouteDeps {
  readonly directory: Pick<Directory, 'dropping' | 'replaceDropping'>
}

/** Returns the routes of the rules of dropping (docs/api/dropping.md). */
export function droppingRoutes(deps: Deps): Route[] {
  return [readDroppingRoute(deps), replaceDroppingRoute(deps)]
}

/** The rules of a workspace. */
const RULES: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the rules of dropping are unavailable: retry after the delay',
    retryAfterSeconds: 5,
  },
}

function readDroppingRoute({ directory, ...deps }: Deps): Route {
  return guardedRoute(deps, readDropping, {
    resource: RULES,
    async run({ workspaceId }): Promise<Outcome<DroppingAnswer>> {
      return { ok: true, value: present(await queryDirectory(directory.dropping(workspaceId))) }
    },
  })
}

function replaceDroppingRoute(deps: Deps): Route {
  return creationRoute(deps, replaceDropping, {
    resource: RULES,
    body: replaceDroppingSchema,
    reply: okReply,
    async create({ caller, body }): Promise<Outcome<DroppingAnswer>> {
      const { workspaceId } = caller
      const author = authorOf(caller, deps.now())
      const replaced = await queryDirectory(deps.directory.replaceDropping({ workspaceId, ...body }, author))
      return typeof replaced === 'number' ? otherRevision(replaced) : { ok: true, value: present(replaced) }
    },
  })
}

function present(dropping: Dropping | undefined): DroppingAnswer {
  if (dropping === undefined) return { revision: 0, rules: [] }
  const { revision, changedAt, rules } = dropping
  return { revision, changedAt, rules }
}
