import {
  type CreateErasure,
  createErasure,
  createErasureSchema,
  type ErasureAnswer,
} from '../../schemas/http/erasures.ts'
import type { ErasureSubject } from '../../schemas/records/erasure.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { ACTIVE_ERASURES_MAX } from '../../shared/directory/erasures.ts'
import type { Route } from '../../shared/http/route.ts'
import { authorOf } from '../http/author-of.ts'
import { type CreationRouteDeps, creationRoute } from '../http/creation-route.ts'
import { invalid, type Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { ERASURE, presentErasure } from './present-erasure.ts'

interface Deps extends CreationRouteDeps {
  readonly directory: Pick<Directory, 'createErasure'>
  readonly now: () => number
}

const TOO_MANY = `the workspace has ${ACTIVE_ERASURES_MAX} erasures in progress, which is the maximum: send it again when one is done`

/** Returns the route that erases a person or a session (docs/api/retention.md#erasures). */
export function createErasureRoute(deps: Deps): Route {
  return creationRoute(deps, createErasure, {
    resource: ERASURE,
    body: createErasureSchema,
    async create({ caller, body }): Promise<Outcome<ErasureAnswer>> {
      const { workspaceId, userId } = caller
      const now = deps.now()
      const author = authorOf(caller, now)
      const request = { workspaceId, subject: subjectOf(body), createdBy: userId, now, author }
      const erasure = await queryDirectory(deps.directory.createErasure(request))
      if (erasure === 'too_many_erasures') return invalid(TOO_MANY)
      return { ok: true, value: { erasure: presentErasure(erasure) } }
    },
  })
}

function subjectOf({ identifier, sourceType, sessionId }: CreateErasure): ErasureSubject {
  if (identifier === undefined) return { kind: 'session', sessionId: sessionId ?? '' }
  return { kind: 'identifier', identifier, ...(sourceType !== undefined && { sourceType }) }
}
