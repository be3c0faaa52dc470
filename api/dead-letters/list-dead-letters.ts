import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { selectLetters } from '../../clickhouse/queries/letters/select-letters.ts'
import type { LetterClaims } from '../../letters/letter-claims.ts'
import { type LettersAnswer, listDeadLetters, listLettersQuerySchema } from '../../schemas/http/dead-letters.ts'
import type { Route } from '../../shared/http/route.ts'
import { cutPage } from '../http/cursor.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { queryDirectory } from '../http/query-directory.ts'
import { filterOf, presentLetter } from './present-letter.ts'
import { DEAD_LETTERS } from './resource.ts'
import { cursorOf, readCursor } from './selection.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly letterClaims: Pick<LetterClaims, 'states'>
}

/** Returns the route that lists dead letters (docs/api/dead-letters.md#replay-letters). */
export function listDeadLettersRoute(deps: Deps): Route {
  return guardedRoute(deps, listDeadLetters, {
    resource: DEAD_LETTERS,
    query: listLettersQuerySchema,
    async run({ workspaceId, query: { limit, cursor, ...conditions }, deadline }): Promise<Outcome<LettersAnswer>> {
      const after = readCursor(cursor)
      if (!after.ok) return after
      const page = { workspaceId, filter: filterOf(conditions), order: 'newest', after: after.value } as const
      const found = await selectLetters(deps.clickhouse, { ...page, limit: limit + 1 }, deadline)
      const { shown, nextCursor } = cutPage(found, limit, cursorOf)
      const claims = await queryDirectory(deps.letterClaims.states(workspaceId, shown))
      return {
        ok: true,
        value: { deadLetters: shown.map((letter, i) => presentLetter(letter, claims[i])), nextCursor },
      }
    },
  })
}
