import { hash } from 'node:crypto'
import type { ReleaseStackRow, ReleaseStacksKey } from '../../clickhouse/queries/releases/select-release-stacks.ts'
import type { FindingFramesRow } from '../../clickhouse/tables/finding-frames-table.ts'
import type { SourceMapEntry } from '../../clickhouse/tables/source-maps-table.ts'
import type { ReleaseRequest } from '../../schemas/queues/symbolication.ts'
import { DAY_MS } from '../../schemas/units.ts'
import type { LoadedManifest } from './manifest-reader.ts'
import { type StoreStacksDeps, storeStacks } from './store-stacks.ts'
import { type StackOwner, type SymbolicateStacksDeps, symbolicateStacks } from './symbolicate-stacks.ts'

const LOOK_BACK_MS = DAY_MS
const PAGE_VARIANTS = 200
const MAX_VARIANTS = 10_000
const INDEX_PAGE = 20_000

/** Dependencies of `resolveRelease`. */
export interface ResolveReleaseDeps extends SymbolicateStacksDeps, StoreStacksDeps {
  readonly selectReleaseStacks: (key: ReleaseStacksKey) => Promise<readonly ReleaseStackRow[]>
  /** Stores rows. A repeated call with the same token adds nothing. */
  readonly insertSourceMaps: (rows: readonly SourceMapEntry[], token: string) => Promise<void>
}

/** The outcome of resolving a release. */
export interface ResolvedRelease {
  /** Number of variants that were resolved in this run. */
  readonly variants: number
  /** Where to continue, if the workspace had no time left. */
  readonly after: ReleaseRequest['after']
}

/**
 * Resolves the stacks of a release again after its maps have arrived. Adds the debug ids of the maps to the index, then
 * resolves the stacks that the release has thrown in the previous 24 h.
 *
 * Together with the stacks that are symbolicated one by one, no variant is missed. An exception is stored before its
 * stack is requested, and this function runs after the manifest is current. A stack that was symbolicated before the
 * manifest was current, or before its debug ids were in the index, belongs to an exception that was stored even
 * earlier, so the read below finds it. A stack whose exception is stored after that read is symbolicated with the
 * manifest and the index, because neither is ever cached as absent. If both resolve the same variant, the rank of the
 * rows decides.
 */
export async function resolveRelease(
  deps: ResolveReleaseDeps,
  owner: StackOwner,
  request: ReleaseRequest & { readonly receivedAtMs: number; readonly token: string },
): Promise<ResolvedRelease> {
  const { workspaceId } = owner
  const held = await deps.retryUntilStopped('read a manifest', () => deps.manifests.read(workspaceId, request.slug))
  if (held === undefined) return { variants: 0, after: undefined }
  if (request.after === undefined) await fillIndex(deps, owner, held)
  const key = {
    ...owner,
    serviceVersion: request.release,
    releaseSlug: request.slug,
    receivedSinceMs: request.receivedAtMs - LOOK_BACK_MS,
    limit: PAGE_VARIANTS,
  }
  let after = request.after?.variantId ?? ''
  const before = request.after?.variants ?? 0
  let variants = 0
  while (before + variants < MAX_VARIANTS) {
    const page = await deps.retryUntilStopped('read stacks', () => deps.selectReleaseStacks({ ...key, after }))
    const stacks = page.map(row => ({ ...row, receivedAtMs: Number(row.receivedAtMs) }))
    const { rows, moves, done } = await symbolicateStacks(deps, owner, stacks)
    await storeStacks(deps, owner, { rows, moves }, `${request.token}:${digestOf(rows)}`)
    variants += done
    after = page[done - 1]?.variantId ?? after
    if (done < page.length) return { variants, after: { variantId: after, variants: before + variants } }
    if (page.length < PAGE_VARIANTS) break
  }
  return { variants, after: undefined }
}

/** Returns a digest for the token. A repeated run may find other rows, which must not be deduplicated as the same. */
function digestOf(rows: readonly FindingFramesRow[]): string {
  const keys = rows.map(row => [row.variantId, row.occurredAtUnixNano, row.resolvedFrameCount])
  return hash('sha256', JSON.stringify(keys))
}

async function fillIndex(deps: ResolveReleaseDeps, owner: StackOwner, { manifest, byDebugId }: LoadedManifest) {
  const { releaseSlug, sequence, completedAt } = manifest
  const entries = [...byDebugId].map(
    ([debugId, { sha256, size, chunkUrl, path }]): SourceMapEntry => ({
      ...owner,
      ...{ debugId, releaseSlug, sequence, sha256, size, chunkUrl, path },
      completedAtMs: Date.parse(completedAt),
    }),
  )
  for (let i = 0; i < entries.length; i += INDEX_PAGE) {
    const page = entries.slice(i, i + INDEX_PAGE)
    const token = `${owner.workspaceId}:${releaseSlug}:${sequence}:${i}`
    await deps.retryUntilStopped('store debug ids', () => deps.insertSourceMaps(page, token))
  }
}
