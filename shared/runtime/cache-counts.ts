import type { Metrics } from './metrics.ts'

/** How often a cache had what was looked up, and how often it had not. A cache counts by adding to its own numbers. */
export interface CacheCounts {
  readonly hits: number
  readonly misses: number
}

/** Shows the counts of caches. The names are labels, so they are fixed by the program. */
export function watchCaches(metrics: Metrics, caches: Readonly<Record<string, CacheCounts>>): void {
  metrics.counter({
    name: 'penstock_cache_lookups_total',
    help: 'Lookups in caches, by whether the cache had the value.',
    labelNames: ['cache', 'outcome'],
    collect() {
      this.reset()
      for (const [cache, { hits, misses }] of Object.entries(caches)) {
        this.inc({ cache, outcome: 'hit' }, hits)
        this.inc({ cache, outcome: 'miss' }, misses)
      }
    },
  })
}
