import type { Readable } from 'node:stream'
import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { Letter } from '../../clickhouse/queries/letters/letter.ts'
import { selectAttempts, selectLetters } from '../../clickhouse/queries/letters/select-letters.ts'
import type { ClaimState, LetterClaims } from '../../letters/letter-claims.ts'
import { readLetterId } from '../../letters/letter-id.ts'
import { type LetterHead, openLetterBody, readLetterHead, readLetters } from '../../letters/read-letters.ts'
import { isReplayable } from '../../letters/replay-letters.ts'
import { SCRUBBED_LETTER_BYTES, scrubLetter } from '../../letters/scrub-letter.ts'
import {
  type LetterAnswer,
  type LettersAnswer,
  listDeadLetters,
  listLettersQuerySchema,
  readDeadLetter,
  readDeadLetterBody,
} from '../../schemas/http/dead-letters.ts'
import { DEFAULT_SCRUBBING } from '../../schemas/records/scrubbing.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import { type Header, NO_SNIFF, NO_STORE, type Reply, type Route } from '../../shared/http/route.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { Scrubber } from '../../shared/scrubbing/scrubber.ts'
import { cutPage } from '../http/cursor.ts'
import { queryDirectory } from '../http/directory.ts'
import { rfc3339FromUnixMs } from '../http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { notFound } from '../http/resource.ts'
import { cursorOf, DEAD_LETTERS, filterOf, presentLetter, readCursor } from './present-letter.ts'

interface Deps extends GuardedRouteDeps, LoadLetterDeps {
  readonly clickhouse: ClickHouseClient
  readonly letterClaims: Pick<LetterClaims, 'states'>
  readonly objects: Pick<ObjectStore, 'getStream'>
  readonly directory: Pick<Directory, 'scrubbing' | 'scrubbingKey'>
}

/** Returns the routes that read dead letters (docs/api/dead-letters.md#replay-letters). */
export function letterReadRoutes(deps: Deps): Route[] {
  return [listDeadLettersRoute(deps), readDeadLetterRoute(deps), readDeadLetterBodyRoute(deps)]
}

/** Returns the route that lists dead letters (docs/api/dead-letters.md#replay-letters). */
function listDeadLettersRoute(deps: Deps): Route {
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

/** Returns the route that reads a dead letter without its body (docs/api/dead-letters.md#replay-letters). */
function readDeadLetterRoute(deps: Deps): Route {
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

/** A client has chosen the bytes. No browser may render them, guess their type or run them in this origin. */
const HEADERS: readonly Header[] = [
  ['content-type', 'application/octet-stream'],
  ['content-disposition', 'attachment; filename="dead-letter.bin"'],
  NO_SNIFF,
  ['content-security-policy', "default-src 'none'; sandbox"],
  NO_STORE,
]

interface Body {
  readonly head: LetterHead
  readonly bytes: Readable | Buffer
  /** Number of values that were replaced. */
  readonly scrubbed?: number
}

/** Returns the route that reads the body of a dead letter, scrubbed (docs/api/dead-letters.md#replay-letters). */
function readDeadLetterBodyRoute(deps: Deps): Route {
  const { objects } = deps
  return guardedRoute(deps, readDeadLetterBody, {
    resource: DEAD_LETTERS,
    reply: bodyReply,
    async run({ workspaceId, param, deadline }): Promise<Outcome<Body>> {
      const loaded = await loadLetter(deps, workspaceId, param('letterId'), deadline)
      const head = loaded && (await readLetterHead(objects, loaded.letter))
      if (loaded === undefined || head === undefined) return notFound(DEAD_LETTERS)
      const { letter } = loaded
      if (letter.bodyBytes === 0) return { ok: true, value: { head, bytes: Buffer.alloc(0) } }
      if (letter.bodyBytes <= SCRUBBED_LETTER_BYTES) return scrubbedBody(deps, workspaceId, letter)
      const bytes = await openLetterBody(objects, letter)
      return bytes ? { ok: true, value: { head, bytes } } : notFound(DEAD_LETTERS)
    },
  })
}

async function scrubbedBody(
  { objects, directory }: Pick<Deps, 'objects' | 'directory'>,
  workspaceId: string,
  letter: Letter,
): Promise<Outcome<Body>> {
  const frame = (await readLetters(objects, [letter])).get(letter)?.frame
  if (frame === undefined) return notFound(DEAD_LETTERS)
  const kept = await queryDirectory(directory.scrubbing(workspaceId))
  const { revision, rules } = kept ?? { revision: 0, rules: DEFAULT_SCRUBBING }
  const hashKey = await queryDirectory(directory.scrubbingKey(workspaceId))
  const shown = await scrubLetter(new Scrubber({ revision, rules, hashKey }), letter.queue, frame)
  const { contentType } = frame
  const { bytes, contentEncoding, scrubbed } = shown
  return { ok: true, value: { head: { contentType, contentEncoding }, bytes, scrubbed } }
}

function bodyReply({ head, bytes, scrubbed = 0 }: Body): Reply {
  const described: Header[] = [
    ['x-letter-content-type', head.contentType],
    ['x-letter-content-encoding', head.contentEncoding],
    ['x-letter-scrubbed', String(scrubbed)],
  ]
  const close = Buffer.isBuffer(bytes) ? {} : { onEnd: () => void bytes.destroy() }
  return { status: 200, headers: [...HEADERS, ...described], body: bytes, ...close }
}

/** Dependencies of loading a letter. */
interface LoadLetterDeps {
  readonly clickhouse: ClickHouseClient
  readonly letterClaims: Pick<LetterClaims, 'states'>
}

/** A letter with all its attempts. */
interface LoadedLetter {
  /** As of its last attempt. */
  readonly letter: Letter
  readonly attempts: readonly Letter[]
  readonly claim: ClaimState | undefined
}

/** Loads a letter of a workspace. Returns undefined if there is none, or if it is being purged. */
async function loadLetter(
  { clickhouse, letterClaims }: LoadLetterDeps,
  workspaceId: string,
  id: string,
  signal: AbortSignal,
): Promise<LoadedLetter | undefined> {
  const key = readLetterId(id)
  if (key === undefined) return undefined
  const attempts = await selectAttempts(clickhouse, workspaceId, [key], signal)
  const letter = attempts.at(-1)
  if (letter === undefined) return undefined
  const [claim] = await queryDirectory(letterClaims.states(workspaceId, [letter]))
  return claim?.isPurged ? undefined : { letter, attempts, claim }
}
