import { forEachConcurrently } from '../../shared/concurrency/for-each.ts'
import { BuildStop, listed } from './build-stop.ts'
import type { PairedMap } from './pair-maps.ts'
import { type PreparedMap, type PrepareOptions, prepareMap } from './prepare-map.ts'

export interface PreparedMaps {
  /** In the order of their paths. */
  readonly maps: readonly PreparedMap[]
  readonly warnings: readonly string[]
}

/** Maps are scanned and hashed on one thread; two at once keep it busy, and hold at most twice the largest map. */
const AT_ONCE = 2

/** Prepares all maps. Throws a BuildStop (`client_maps_unmapped`) when one is no source map and that is not allowed. */
export async function prepareMaps(
  paired: readonly PairedMap[],
  options: PrepareOptions & { readonly allowUnmapped: boolean; readonly signal: AbortSignal },
): Promise<PreparedMaps> {
  const maps: PreparedMap[] = []
  const refused: string[] = []
  await forEachConcurrently(paired, { concurrency: AT_ONCE, stopOnFailure: true }, async map => {
    options.signal.throwIfAborted()
    const result = await prepareMap(map, options)
    if ('refused' in result) refused.push(`${map.path} cannot be used: ${result.refused}`)
    else maps.push(result)
  })
  refused.sort()
  if (maps.length === 0 || (refused.length > 0 && !options.allowUnmapped)) {
    throw new BuildStop('client_maps_unmapped', `source maps cannot be used:${listed(refused)}`)
  }
  maps.sort((a, b) => (a.path < b.path ? -1 : 1))
  const differing = maps.flatMap(({ path, differing }) =>
    differing.map(bundle => `${bundle} has another debug id than its map ${path}`),
  )
  return { maps, warnings: [...refused, ...differing] }
}
