import { z } from 'zod'
import type { PermittedOperation } from '../../schemas/http/operation.ts'
import { type PageQuery, pageQuerySchema } from '../../schemas/http/page.ts'
import type { Actor } from '../../schemas/records/change.ts'
import type { Author } from '../../shared/directory/changes/change-log.ts'
import { CreationRefused, type NewCreation, type Once } from '../../shared/directory/creations.ts'
import { DirectoryRecordError } from '../../shared/directory/record.ts'
import type { ListPage } from '../../shared/directory/sorted-index.ts'
import type { Route } from '../../shared/http/route.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import type { Caller } from '../auth/caller.ts'
import { cutPage, decodeCursor, encodeCursor, type Page } from './cursor.ts'
import { type GuardedRouteDeps, guardedRoute } from './guarded-route.ts'
import type { Outcome } from './outcome.ts'
import type { Resource } from './resource.ts'

/**
 * Returns the result of a query of the directory. Throws a DirectoryRecordError for a record that breaks its schema, a
 * CreationRefused for a creation that is repeated, and a TransientError for every other failure, because Redis becomes
 * available again.
 */
export async function queryDirectory<T>(result: Promise<T>): Promise<T> {
  try {
    return await result
  } catch (error) {
    if (error instanceof DirectoryRecordError || error instanceof CreationRefused) throw error
    throw new TransientError(`the directory is unavailable: ${describeError(error)}`, { cause: error })
  }
}

/** Returns who a caller is, as records have it. */
export function actorOf({ userId, apiKeyId }: Caller): Actor {
  return { userId, apiKeyId }
}

/** Returns the author of the changes that a caller makes at this time. */
export function authorOf(caller: Caller, now: number, once?: Once): Author {
  return { by: actorOf(caller), now, once }
}

/** Returns the creation with its response, if the client may repeat it. */
export function onceOf(creation: NewCreation | undefined, answerOf: Once['answerOf']): Once | undefined {
  return creation && { creation, answerOf }
}

const cursorSchema = z
  .tuple([z.int().min(0), z.string().regex(/^[a-z]{3}_[0-9a-z]{1,64}$/)])
  .transform(([createdAtMs, id]) => ({ createdAtMs, id }))

/** Returns the page that a query requests, for a list of the directory: newest first, by the time of creation. */
export function directoryPage({ limit, cursor }: PageQuery): Outcome<ListPage> {
  const after = decodeCursor(cursorSchema, cursor)
  return after.ok ? { ok: true, value: { limit, after: after.value } } : after
}

/** The part of a route that lists entries of the directory. */
interface DirectoryList<T, A> {
  readonly resource: Resource
  /** Reads entries of a workspace, newest first. */
  readonly read: (workspaceId: string, page: ListPage) => Promise<readonly T[]>
  /** Returns the answer with the entries of a page. */
  readonly present: (shown: readonly T[], nextCursor: string | null, workspaceId: string) => A | Promise<A>
}

/** Returns the route that lists entries of the directory, newest first. */
export function directoryListRoute<T extends { createdAt: string; id: string }, A>(
  deps: GuardedRouteDeps,
  operation: PermittedOperation,
  { resource, read, present }: DirectoryList<T, A>,
): Route {
  return guardedRoute(deps, operation, {
    resource,
    query: pageQuerySchema,
    async run({ workspaceId, query }): Promise<Outcome<A>> {
      const page = directoryPage(query)
      if (!page.ok) return page
      const found = await queryDirectory(read(workspaceId, withOneMore(page.value)))
      const { shown, nextCursor } = cutDirectoryPage(found, page.value)
      return { ok: true, value: await present(shown, nextCursor, workspaceId) }
    },
  })
}

/** Returns the page to read from the directory: one more entry shows whether there is a next page. */
export function withOneMore({ limit, after }: ListPage): ListPage {
  return { limit: limit + 1, after }
}

/** Cuts the page out of the entries that were read, and encodes the cursor of the next page. */
export function cutDirectoryPage<T extends { createdAt: string; id: string }>(
  found: readonly T[],
  { limit }: ListPage,
): Page<T> {
  return cutPage(found, limit, ({ createdAt, id }) => encodeCursor([Date.parse(createdAt), id]))
}
