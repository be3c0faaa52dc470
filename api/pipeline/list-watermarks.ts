import { type PageQuery, pageQuerySchema } from '../../schemas/http/page.ts'
import type { Problem } from '../../schemas/http/problems.ts'
import { listWatermarks, type Watermark, type WatermarksPage } from '../../schemas/http/watermarks.ts'
import type { Directory } from '../../shared/directory/directory.ts'
import type { Route } from '../../shared/http/route.ts'
import type { SurfaceWatermarks, WatermarkSurface, Watermarks } from '../../shared/queue/watermark.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import { cutDirectoryPage, directoryPage, queryDirectory, withOneMore } from '../http/directory.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import type { Resource } from '../http/resource.ts'

interface Deps extends GuardedRouteDeps {
  readonly directory: Pick<Directory, 'surfaces'>
  /** Reads the watermarks of surfaces from the Redis of the queues. */
  readonly watermarks: (surfaces: readonly WatermarkSurface[]) => Promise<Watermarks>
}

const unavailable: Problem = {
  code: 'INGEST_INFRA_UNAVAILABLE',
  message: 'watermarks are unavailable: retry after the delay',
  retryAfterSeconds: 5,
}

/** Watermarks of surfaces. */
export const WATERMARKS: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable,
}

/** Returns the route that lists the watermarks of the surfaces of a workspace (docs/api/receipts.md#watermarks). */
export function listWatermarksRoute(deps: Deps): Route {
  return guardedRoute(deps, listWatermarks, {
    resource: WATERMARKS,
    query: pageQuerySchema,
    run: request => readWatermarksPage(deps, request),
  })
}

/** Reads the watermarks of a page of surfaces. */
export async function readWatermarksPage(
  deps: Omit<Deps, keyof GuardedRouteDeps>,
  { workspaceId, query }: Pick<CallerRead<PageQuery>, 'workspaceId' | 'query'>,
): Promise<Outcome<WatermarksPage>> {
  const page = directoryPage(query)
  if (!page.ok) return page
  const found = await queryDirectory(deps.directory.surfaces(workspaceId, withOneMore(page.value)))
  const { shown, nextCursor } = cutDirectoryPage(found, page.value)
  const surfaces = shown.map(({ id }) => ({ workspaceId, surfaceId: id }))
  const read = await readFromQueues(deps.watermarks(surfaces))
  const readAt = new Date(read.readAtMs).toISOString()
  const watermarks = read.surfaces.map((marks, i) => present(shown[i]?.id ?? '', marks, read.readAtMs))
  return { ok: true, value: { readAt, watermarks, nextCursor } }
}

/** Returns what is read from the queues. Throws a TransientError for every failure, because Redis becomes available again. */
export async function readFromQueues<T>(read: Promise<T>): Promise<T> {
  try {
    return await read
  } catch (cause) {
    throw new TransientError(`the queues are unavailable: ${describeError(cause)}`, { cause })
  }
}

function present(surfaceId: string, marks: SurfaceWatermarks, readAtMs: number): Watermark {
  const settled = Object.entries(marks.settledBeforeMs).map(([kind, ms]) => [kind, new Date(ms).toISOString()])
  const ages = Object.entries(marks.unfinishedSinceMs).map(([queue, ms]) => [queue, (readAtMs - ms) / 1_000])
  return {
    surfaceId,
    settledBefore: Object.fromEntries(settled) as Watermark['settledBefore'],
    oldestAgeSeconds: Object.fromEntries(ages) as Watermark['oldestAgeSeconds'],
  }
}
