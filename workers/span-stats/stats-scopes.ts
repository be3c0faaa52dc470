import type { LowCardinality } from '../../clickhouse/native/low-cardinality.ts'
import { readOrigin } from '../../clickhouse/queries/attributes/origin.ts'
import type { ScopeColumns } from '../../clickhouse/tables/scope-columns.ts'
import { DAY_MS, MINUTE_MS } from '../../schemas/units.ts'
import { cutString } from '../otlp/protobuf/cut-text.ts'

/** Workspace, surface and service of spans, and the day on which they arrived. */
export interface StatsScope {
  readonly workspaceId: string
  readonly surfaceId: string
  /** Arrival of the first of these spans, in Unix ms. */
  readonly receivedAtMs: number
  readonly serviceName: string
  readonly serviceVersion: string
  readonly environment: string
  /** Number of the surface. */
  readonly surface: number
}

/** Length to which environments are cut, in bytes. */
const ENVIRONMENT_BYTES = 256
const ENVIRONMENT_KEYS = ['deployment.environment.name', 'deployment.environment'] as const

/** Numbers the scopes of a batch of spans in the order in which they first appear. */
export class StatsScopes {
  readonly all: StatsScope[] = []
  readonly #columns: ScopeColumns
  readonly #numbers = new Map<string, number>()
  readonly #surfaces = new Map<string, number>()
  readonly #ofOrigins = new Map<number, Pick<StatsScope, 'serviceVersion' | 'environment'>>()
  #workspace = -1
  #surface = -1
  #service = -1
  #origin = -1
  #day = -1
  #latest = -1
  /** Minute of the arrival of the row that `numberOf` was called with last. */
  receivedMinute = 0

  constructor(columns: ScopeColumns) {
    this.#columns = columns
  }

  /** Number of surfaces so far. */
  get surfaces(): number {
    return this.#surfaces.size
  }

  /** Returns the number of the scope of a row. Rows of a request follow each other, so that it is mostly the latest. */
  numberOf(row: number): number {
    const { workspaceId, surfaceId, serviceName, origin, receivedAt } = this.#columns
    const at = 8 * row
    const receivedAtMs = receivedAt.view.getUint32(at, true) + receivedAt.view.getUint32(at + 4, true) * 2 ** 32
    this.receivedMinute = Math.floor(receivedAtMs / MINUTE_MS)
    const day = Math.floor(receivedAtMs / DAY_MS)
    const workspaceIndex = indexAt(workspaceId, row)
    const surfaceIndex = indexAt(surfaceId, row)
    const serviceIndex = indexAt(serviceName, row)
    const originIndex = indexAt(origin, row)
    if (
      originIndex === this.#origin &&
      serviceIndex === this.#service &&
      surfaceIndex === this.#surface &&
      workspaceIndex === this.#workspace &&
      day === this.#day
    ) {
      return this.#latest
    }
    this.#workspace = workspaceIndex
    this.#surface = surfaceIndex
    this.#service = serviceIndex
    this.#origin = originIndex
    this.#day = day
    this.#latest = this.#find({
      workspaceId: workspaceId.dictionary.textOf(workspaceIndex),
      surfaceId: surfaceId.dictionary.textOf(surfaceIndex),
      receivedAtMs,
      serviceName: serviceName.dictionary.textOf(serviceIndex),
      ...this.#ofOrigin(originIndex),
    })
    return this.#latest
  }

  /** Returns the number of the scope of spans of the same surface and day whose service is not told apart. */
  restOf(scope: number): number {
    const { workspaceId, surfaceId, receivedAtMs } = this.all[scope] as StatsScope
    return this.#find({ workspaceId, surfaceId, receivedAtMs, serviceName: OTHER, serviceVersion: '', environment: '' })
  }

  #find(scope: Omit<StatsScope, 'surface'>): number {
    const { workspaceId, surfaceId, receivedAtMs, serviceName, serviceVersion, environment } = scope
    const ofSurface = `${workspaceId} ${surfaceId}`
    const surface = this.#surfaces.get(ofSurface) ?? this.#surfaces.size
    this.#surfaces.set(ofSurface, surface)
    const day = Math.floor(receivedAtMs / DAY_MS)
    const key = `${surface} ${day} ${JSON.stringify([serviceName, serviceVersion, environment])}`
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    this.#numbers.set(key, this.all.length)
    return this.all.push({ ...scope, surface }) - 1
  }

  #ofOrigin(index: number) {
    const known = this.#ofOrigins.get(index)
    if (known !== undefined) return known
    const { serviceVersion, resourceJson } = readOrigin('', this.#columns.origin.dictionary.textOf(index))
    const attributes = (resourceJson === '' ? {} : JSON.parse(resourceJson)) as Readonly<Record<string, unknown>>
    const environment = ENVIRONMENT_KEYS.map(key => attributes[key]).find(value => typeof value === 'string')
    const read = {
      serviceVersion,
      environment: cutString(String(environment ?? ''), ENVIRONMENT_BYTES),
    }
    this.#ofOrigins.set(index, read)
    return read
  }
}

/** Name of services and operations that are over a limit. */
export const OTHER = 'other'

function indexAt({ indexes }: LowCardinality, row: number): number {
  return indexes.view.getUint32(4 * row, true)
}
