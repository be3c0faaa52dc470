import type { ManifestEntry } from '../../schemas/http/source-maps/schemas.ts'
import type { ManifestFile } from '../../schemas/records/manifest.ts'
import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { type FindMapDeps, findMap } from './find-map.ts'
import { missingParts } from './part-claims.ts'
import { type PathUploads, readUploads } from './read-uploads.ts'

/** Maps of one completion in progress at the same time. Each takes less than 2 MiB of memory, whatever its size. */
const CONCURRENT_MAPS = 16
/** Paths that a refusal names (docs/api/releases.md#source-map-complete). */
const MAX_FAULTS = 20

/** The files of a manifest, or why it cannot be built. */
type CollectedMaps =
  | { readonly ok: true; readonly files: ManifestFile[] }
  /** One sentence per path, in the order of the entries. */
  | { readonly ok: false; readonly faults: string[] }

/**
 * Finds and stores the maps of all entries, or returns the faults of those it cannot find. Throws a TransientError while
 * acknowledged parts are not stored yet, before it looks up any map.
 */
export async function collectMaps(deps: FindMapDeps, entries: readonly ManifestEntry[]): Promise<CollectedMaps> {
  const uploads = await readUploads(
    deps.redis,
    deps.keys,
    entries.map(entry => entry.path),
  )
  const pending = entries.find((_, i) => isPending(uploads[i] as PathUploads))
  if (pending) throw new TransientError(`parts of ${JSON.stringify(pending.path.slice(0, 200))} are not stored yet`)

  const files: ManifestFile[] = new Array(entries.length)
  const faults = new Map<number, string>()
  const isDone = () => faults.size >= MAX_FAULTS
  await forEachConcurrently(entries, { concurrency: CONCURRENT_MAPS, isDone }, async (entry, i) => {
    const found = await findMap(deps, entry, uploads[i] as PathUploads)
    if (found.ok) files[i] = found.file
    else faults.set(i, `${JSON.stringify(entry.path.slice(0, 200))} ${found.fault}`)
  })
  if (faults.size === 0) return { ok: true, files }
  const inOrder = [...faults].sort(([a], [b]) => a - b)
  return { ok: false, faults: inOrder.slice(0, MAX_FAULTS).map(([, fault]) => fault) }
}

/** Returns whether all parts are claimed and some are not stored yet. A missing number is a fault, not a reason to wait. */
function isPending({ parts }: PathUploads): boolean {
  if (parts === undefined || parts.assembled !== undefined) return false
  return missingParts(parts.parts).length === 0 && parts.parts.some(part => !part.stored)
}
