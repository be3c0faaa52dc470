import { MEASURES } from '../../../alerts/measuring/measures.ts'
import type { Instants, MeasureDeps, Reading } from '../../../alerts/measuring/reading.ts'
import { onFirstShard } from '../../../clickhouse/client.ts'
import type { AlertRule, CalledKind } from '../../../schemas/records/alerts.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { bucketOfDuration } from '../../../workers/span-stats/duration-bucket.ts'
import { connectDatabase } from '../cluster/connect.ts'
import { sharedServices } from '../services/shared-services.ts'
import { createTestDatabase } from '../services/test-database.ts'

/** A whole hour some days ago: every instant before it is in the retention. */
export const T = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 10 * DAY_MS
/** The surface of rows that name none. */
export const SHOP = 'srf_shop'
/** The finding of exceptions that name none. */
export const FINDING = `fnd_${'a'.repeat(26)}`

/** The times of readings in minutes after T. */
export const minutesAfter = (readings: readonly Reading[]) => readings.map(({ atMs }) => (atMs - T) / MINUTE_MS)

/** A time as ClickHouse reads it. */
export const timeOf = (ms: number) => new Date(ms).toISOString().slice(0, -1)

type TestDatabase = Awaited<ReturnType<typeof createTestDatabase>>

/** Exceptions that were stored. */
interface Thrown {
  readonly atMs: number
  readonly count?: number
  readonly variant?: string
  readonly findingId?: string
  readonly of?: string
  readonly session?: string
  readonly environment?: string
}

/** Calls that a service received, or made. */
interface Calls {
  readonly atMs: number
  readonly calls: number
  readonly errors?: number
  readonly ms?: number
  readonly kind?: number
  readonly service?: string
  readonly environment?: string
  readonly of?: string
}

/** A database whose rows rules measure, with the present workspace and another one. */
export class MeasuredStage {
  readonly #database: TestDatabase
  readonly clickhouse: MeasureDeps['clickhouse']
  workspaceId = newId('ws')
  other = newId('ws')
  merges = new Map<string, string>()
  surfaces: string[] = [SHOP]
  settled: Map<string, number> | undefined
  #traces = 0

  private constructor(database: TestDatabase, clickhouse: MeasureDeps['clickhouse']) {
    this.#database = database
    this.clickhouse = clickhouse
  }

  static async create(name: string): Promise<MeasuredStage> {
    const { clickhouseUrl } = sharedServices()
    const database = await createTestDatabase(clickhouseUrl, `${name}_${process.pid}`)
    return new MeasuredStage(database, connectDatabase(clickhouseUrl, database.name))
  }

  /** Begins with two empty workspaces. */
  renew(): void {
    this.workspaceId = newId('ws')
    this.other = newId('ws')
    this.merges = new Map()
    this.surfaces = [SHOP]
    this.settled = undefined
  }

  async drop(): Promise<void> {
    await this.clickhouse.close()
    await this.#database.drop()
  }

  insert(table: string, values: readonly object[]): Promise<unknown> {
    return onFirstShard(this.clickhouse, shard => shard.insert({ table, values, format: 'JSONEachRow' }))
  }

  /** Returns the readings of a rule at several instants, in their order. */
  async measure(kind: CalledKind, rule: Partial<AlertRule>, instants: Instants): Promise<Reading[]> {
    const { settled, surfaces, merges, clickhouse, workspaceId } = this
    const deps: MeasureDeps = {
      clickhouse,
      directory: {
        findingMerges: async () => merges,
        surfaces: async () => surfaces.map(id => ({ id, createdAt: '2026-11-21T00:00:00.000Z' })) as never,
      },
      settledMs: settled && (async () => settled),
    }
    const of = { workspaceId, rule: { name: 'r', kinds: [kind], ...rule }, instants }
    const readings = await MEASURES[kind]?.(deps, of, AbortSignal.timeout(20_000))
    return (readings ?? []).toSorted((a, b) => a.atMs - b.atMs)
  }

  /** Returns the readings of a rule at one instant. */
  at(kind: CalledKind, rule: Partial<AlertRule>, atMs: number): Promise<Reading[]> {
    return this.measure(kind, rule, { fromMs: atMs - MINUTE_MS, toMs: atMs, stepMs: MINUTE_MS })
  }

  async throwErrors(thrown: readonly Thrown[]): Promise<void> {
    const rows = thrown.flatMap(({ atMs, count = 1, variant = 'variant-1', findingId = FINDING, ...one }) =>
      Array.from({ length: count }, () => ({
        ...{ workspace_id: one.of ?? this.workspaceId, surface_id: SHOP, message: 'm', source: 'span_event' },
        ...{ received_at: timeOf(atMs), stored_at: timeOf(atMs + 1_000), occurred_at_unix_nano: `${atMs}000000` },
        ...{ variant_id: variant, finding_id: findingId, rank: 1, trace_id: String(++this.#traces) },
        ...{ service_name: 'shop', service_version: '1.0', type: 'EmptyCart' },
        ...{ session_id: one.session ?? '', environment: one.environment ?? 'production' },
      })),
    )
    await this.insert('exceptions', rows)
  }

  async receiveCalls(calls: readonly Calls[]): Promise<void> {
    const rows = calls.flatMap(({ atMs, calls: count, errors = 0, ms = 10, kind = 2, ...one }) => {
      const rowOf = (spans: number, status_code: number) => ({
        ...{ workspace_id: one.of ?? this.workspaceId, surface_id: SHOP, received_at: timeOf(atMs), kind, status_code },
        ...{ service_name: one.service ?? 'shop', environment: one.environment ?? 'production', operation: 'GET' },
        ...{ minute: Math.floor(atMs / MINUTE_MS) * 60, spans, duration_sum_nano: spans * ms * 1e6 },
        durations: { [bucketOfDuration(ms * 1e6)]: spans },
      })
      return [rowOf(count - errors, 1), rowOf(errors, 2)].filter(({ spans }) => spans > 0)
    })
    await this.insert('span_stats', rows)
  }

  /** Stores that a surface was sent a request at each of these times. */
  async sendTo(surface: string, ...atMs: number[]): Promise<void> {
    const rows = atMs.map(ms => ({
      ...{
        workspace_id: this.workspaceId,
        surface_id: surface,
        received_at: timeOf(ms),
        stored_at: timeOf(ms + 2_000),
      },
      ...{ job_id: 'j', signal: 'logs', payloads: 1 },
    }))
    await this.insert('ingest_log', rows)
  }

  async countRequests(surface: string, atMs: number, outcome: string, requests = 1, of = this.workspaceId) {
    const received_hour = Math.floor(atMs / HOUR_MS) * 3_600
    const row = { workspace_id: of, surface_id: surface, signal: 'logs', outcome, place: 'p', requests, received_hour }
    await this.insert('request_counts', [row])
  }
}
