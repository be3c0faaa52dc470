import { LRUCache } from 'lru-cache'

/**
 * Creates a cache that evicts the least recently used values until the rest fit into `limitBytes`. A value larger than
 * the limit is held alone, with the size of the limit: lru-cache by itself would never store it, and a source map
 * larger than the cache would be fetched and parsed again for every stack.
 */
export function createByteCache<V extends { readonly bytes: number }>(limitBytes: number): LRUCache<string, V> {
  return new LRUCache<string, V>({
    maxSize: limitBytes,
    sizeCalculation: value => Math.min(Math.max(value.bytes, 1), limitBytes),
  })
}
