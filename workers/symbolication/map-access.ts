import { getHeapStatistics } from 'node:v8'
import type { Redis } from 'ioredis'
import { SOURCE_MAP_MAX_BYTES } from '../../schemas/http/limits.ts'
import { MIB } from '../../schemas/units.ts'
import type { ReleaseStore } from '../../shared/directory/release-store.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import type { CacheCounts } from '../../shared/runtime/cache-counts.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { symbolicationHeapBytes, type WorkersConfig } from '../config.ts'
import { createManifestReader, type ManifestReader } from './manifest-reader.ts'
import { createMapGuards } from './tracing/map-guards.ts'
import { createMapTracer, type MapTracer, TRACE_DEADLINE_MS } from './tracing/map-tracer.ts'

/** Memory for parsed source maps in the process that parses them, at most a quarter of its heap. */
const CACHE_BYTES = 256 * MIB

/** Reads the source maps of releases. */
export interface MapAccess {
  readonly manifests: ManifestReader
  readonly tracer: MapTracer
}

/** Dependencies of the access to source maps. */
interface MapAccessDeps {
  readonly config: WorkersConfig
  readonly redis: Redis
  readonly objects: ObjectStore
  readonly releases: ReleaseStore
  readonly logger: Logger
  readonly metrics: { watchCache<C extends CacheCounts>(name: 'manifests' | 'source_maps', cache: C): C }
}

/**
 * Returns the access to source maps that the pools of a process share. It is created when a pool asks for it first. `lifecycle`
 * closes it after the pools.
 */
export function createMapAccess(
  deps: MapAccessDeps,
  lifecycle: { onStop(name: string, close: () => unknown): void },
): () => MapAccess {
  let access: MapAccess | undefined
  lifecycle.onStop('source maps', () => access?.tracer.close())
  return () => {
    access ??= {
      manifests: deps.metrics.watchCache('manifests', createManifestReader(deps)),
      tracer: deps.metrics.watchCache('source_maps', createTracer(deps)),
    }
    return access
  }
}

/** Creates the tracer of source maps. A map that the object store refuses permanently counts as absent. */
function createTracer({ config, logger, objects, redis }: MapAccessDeps): MapTracer {
  const openMap = async (mapKey: string) => {
    const object = await objects.getStream(mapKey).catch(error => {
      if (error instanceof PermanentError) return undefined
      throw error
    })
    if (object === undefined || object.size <= SOURCE_MAP_MAX_BYTES) return object
    object.body.destroy()
    return undefined
  }
  const heapBytes = symbolicationHeapBytes(config, getHeapStatistics().heap_size_limit)
  // A worker waits longer for another one than that one may take.
  const guards = createMapGuards(redis, { deadlineMs: 2 * TRACE_DEADLINE_MS, heapBytes })
  return createMapTracer({ openMap, guards, logger }, { heapBytes, cacheBytes: CACHE_BYTES })
}
