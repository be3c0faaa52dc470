import { readLetterHead } from '../../letters/read-letters.ts'
import { isReplayable } from '../../letters/replay-letters.ts'
import { type LetterAnswer, readDeadLetter } from '../../schemas/http/dead-letters.ts'
import type { Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { type LoadedLetter, type LoadLetterDeps, loadLetter } from './load-letter.ts'
import { presentLetter } from './present-letter.ts'
import { DEAD_LETTERS } from './resource.ts'

interface Deps extends GuardedRouteDeps, LoadLetterDeps {
  readonly objects: Pick<ObjectStore, 'getStream'>
}

/** Returns the route that reads a dead letter without its body (docs/api/dead-letters.md#replay-letters). */
export function readDeadLetterRoute(deps: Deps): Route {
  return guardedRoute(deps, readDeadLetter, {
    resource: DEAD_LETTERS,
    async run({ workspaceId, param, deadline }): Promise<Outcome<LetterAnswer>> {
      const loaded = await loadLetter(deps, workspaceId, param('letterId'), deadline)
      if (loaded === undefined) return notFound(DEAD_LETTERS)
      const { letter, claim } = loaded
      const head = await readLetterHead(deps.objects, letter)
      const { detail, storedTables, storedRecords, rejected } = letter
      return {
        ok: true,
        value: {
          deadLetter: {
            ...presentLetter(letter, claim),
            ...(detail !== '' && { detail }),
            ...(head && { contentType: head.contentType, contentEncoding: head.contentEncoding }),
            isReplayable: letter.outcome === 'dead' && head !== undefined && isReplayable(letter),
            storedTables: [...storedTables],
            storedRecords,
            rejected: rejected.map(({ indexes, ...records }) => ({ ...records, indexes: [...indexes] })),
            attempts: attemptsOf(loaded),
          },
        },
      }
    },
  })
}

function attemptsOf({ letter, attempts, claim }: LoadedLetter): LetterAnswer['deadLetter']['attempts'] {
  const settled = attempts.map(({ replayedAtMs, outcome, settledAtMs, reason }) => ({
    ...(replayedAtMs > 0 && { replayedAt: rfc3339FromUnixMs(replayedAtMs) }),
    outcome,
    settledAt: rfc3339FromUnixMs(settledAtMs),
    ...(outcome === 'dead' && { reason }),
  }))
  if (claim === undefined || claim.attempt <= letter.attempt) return settled
  return [...settled, { replayedAt: rfc3339FromUnixMs(claim.replayedAtMs), outcome: 'pending' }]
}
