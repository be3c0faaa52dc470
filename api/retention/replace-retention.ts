import {
  type ReplaceRetention,
  type RetentionAnswer,
  replaceRetention,
  replaceRetentionSchema,
} from '../../schemas/http/retention.ts'
import type { Retention } from '../../schemas/records/directory.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import { retentionFault, sessionsFault } from '../../shared/runtime/retention.ts'
import { authorOf } from '../http/author-of.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { invalid, type Outcome, okReply } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { notFound } from '../http/resource.ts'
import { presentRetention } from './present-retention.ts'
import { RETENTION } from './resource.ts'

interface Deps extends CreationRouteDeps {
  readonly directory: Pick<Directory, 'changeRetention'>
  readonly now: () => number
  readonly retentionDays: number
}

/** Returns the route that replaces how long data is kept (docs/api/retention.md#retention). */
export function replaceRetentionRoute(deps: Deps): Route {
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
