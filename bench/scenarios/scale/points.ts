import { readFileSync } from 'node:fs'
import type { PipelineLoad } from '../../measure/measure-pipeline.ts'

/** Processes and stores that share the work. There is one edge. */
export interface ScaleFleet {
  readonly workers: number
  readonly partitions: number
  readonly shards: number
}

/** A fleet under a load. */
export interface ScalePoint {
  readonly name: string
  readonly fleet: ScaleFleet
  readonly load: PipelineLoad
}

/** The fleet of all loads. */
export const ONE_OF_EACH: ScaleFleet = { workers: 1, partitions: 1, shards: 1 }
/** The load of all fleets. */
const UNIFORM: PipelineLoad = { signal: 'traces', records: 200 }

/** The point with which all others are compared. */
export const BASE: ScalePoint = { name: '1 of each', fleet: ONE_OF_EACH, load: UNIFORM }

const LOADS: readonly ScalePoint[] = [
  { name: '1 span a payload', fleet: ONE_OF_EACH, load: { ...UNIFORM, records: 1 } },
  { name: '20 spans a payload', fleet: ONE_OF_EACH, load: { ...UNIFORM, records: 20 } },
  { name: '1,000 spans a payload', fleet: ONE_OF_EACH, load: { ...UNIFORM, records: 1_000 } },
  { name: 'realistic spans', fleet: ONE_OF_EACH, load: { ...UNIFORM, data: 'realistic' } },
  { name: 'realistic spans, gzip', fleet: ONE_OF_EACH, load: { ...UNIFORM, data: 'realistic', gzip: 'all' } },
]

const ofFleet = (name: string, fleet: Partial<ScaleFleet>): ScalePoint => ({
  name,
  fleet: { ...ONE_OF_EACH, ...fleet },
  load: UNIFORM,
})

/** Setting of the edges and workers: partitions of each queue. */
export const PARTITIONS_SETTING = 'QUEUE_PARTITIONS'
/** Setting of migrations, workers and API: the ClickHouse cluster whose shards have the rows. */
export const CLUSTER_SETTING = 'CLICKHOUSE_CLUSTER'

/** Points of fleets that only some versions can have. */
const FLEETS: readonly { readonly needs?: string; readonly points: readonly ScalePoint[] }[] = [
  { points: [ofFleet('2 workers', { workers: 2 }), ofFleet('4 workers', { workers: 4 })] },
  {
    needs: PARTITIONS_SETTING,
    points: [
      ofFleet('2 partitions, 2 workers', { partitions: 2, workers: 2 }),
      ofFleet('4 partitions, 4 workers', { partitions: 4, workers: 4 }),
    ],
  },
  { needs: CLUSTER_SETTING, points: [ofFleet('2 shards', { shards: 2 })] },
]

const ENV_EXAMPLE = new URL('../../../deploy/env.example', import.meta.url)

/** Returns the points that this version can have, and what was left out. */
export function scalePoints(): { readonly points: readonly ScalePoint[]; readonly skipped: readonly string[] } {
  const example = readFileSync(ENV_EXAMPLE, 'utf8')
  const has = (setting: string) => new RegExp(`^#?${setting}=`, 'm').test(example)
  const possible = FLEETS.filter(({ needs }) => needs === undefined || has(needs))
  const missing = FLEETS.filter(fleets => !possible.includes(fleets))
  return {
    points: [BASE, ...LOADS, ...possible.flatMap(({ points }) => points)],
    skipped: missing.map(
      ({ needs, points }) => `${points.map(({ name }) => name).join('; ')}: there is no setting ${needs}`,
    ),
  }
}
