import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { DAY_MS } from '../../schemas/units.ts'
import { createChanges } from '../load/renewal.ts'
import { truncateTables } from '../measure/clickhouse-work.ts'
import { storedTraceBodies } from '../payloads/stored-trace-bodies.ts'
import { below, createRandom, type Random } from '../payloads/zipf.ts'
import { BENCH_DATABASE } from '../services/start-stores.ts'
import { type Slot, slotsUntil } from './filled-time.ts'
import { fillWithParts, storedRows, withPatientClient } from './insert-parts.ts'
import { type Arrival, storeArrivals } from './store-arrivals.ts'
import {
  DAYS,
  LARGE_TRACE_SPANS,
  SMALL_TRACE_SPANS,
  type StoredTrace,
  WORKSPACES,
  workspaceId,
} from './stored-traces.ts'
import { mix, renewedId, Template, valueMark, valueText } from './template.ts'

/** Result of filling a table. */
export interface Filled {
  readonly spans: number
  readonly parts: number
  readonly bytesPerSpan: number
  readonly seconds: number
  /** The traces with a finding. */
  readonly small: readonly StoredTrace[]
  readonly large: readonly StoredTrace[]
}

const SERVICES = 20
/** Small traces whose spans arrive together. */
const TRACES_PER_SET = 20
const SET_SPANS = TRACES_PER_SET * SMALL_TRACE_SPANS
/** Number of small traces for each large one. */
const LARGE_EVERY = 500
const SETS_PER_LARGE = LARGE_EVERY / TRACES_PER_SET
/** Number of small traces for each with a finding. Every large one has a finding. */
const FINDING_EVERY = 50
const SPANS_PER_BODY = 200
/** Time in which the spans of a trace arrive: exporters of several services send theirs at different times. */
const SPREAD_MS = 5_000
/** Time between the start of a span and its arrival. */
const DELAY_MS = 2_000
const SMALL_SETS = 50
const LARGE_SETS = 20

/**
 * Fills the emptied table `spans` with about this many rows, as merges would leave them: several parts a day, each with what
 * arrived in some hours one after the other. Merges stay stopped.
 */
export async function fillSpans(url: string, spans: number, firstDay: string, days: number = DAYS): Promise<Filled> {
  const startedAt = performance.now()
  const slots = slotsUntil(Date.parse(firstDay) + days * DAY_MS, days)
  const sets = Math.round(spans / slots.length / (SET_SPANS + LARGE_TRACE_SPANS / SETS_PER_LARGE))
  const source = createSource()
  const filled = slots.map(slot => arrivalsOf(source, slot, sets))
  return withPatientClient(url, async client => {
    await truncateTables(client, BENCH_DATABASE)
    await fillWithParts(
      client,
      'spans',
      filled.map(
        ({ arrivals }) =>
          () =>
            storeArrivals(client, 'traces', arrivals),
      ),
    )
    const { rows, parts, bytesPerRow } = await storedRows(client, 'spans')
    return {
      spans: rows,
      parts,
      bytesPerSpan: bytesPerRow,
      seconds: (performance.now() - startedAt) / 1_000,
      small: filled.flatMap(({ small }) => small),
      large: filled.flatMap(({ large }) => large),
    }
  })
}

/** Adds a few traces of one size, each with a finding, in all of the days. */
export async function addTraces(
  client: ClickHouseClient,
  spans: number,
  traces: number,
  firstDay: string,
): Promise<StoredTrace[]> {
  const random = createRandom(spans)
  const nextChange = createChanges(spans)
  const set = createSet(random, 1, spans, 0)
  const added: StoredTrace[] = []
  const arrivals = function* () {
    for (let i = 0; i < traces; i++) {
      const change = nextChange()
      const atMs = Date.parse(firstDay) + ((i + 0.5) / traces) * DAYS * DAY_MS
      yield* takeSet(set, change, workspaceId(i % WORKSPACES), atMs, random)
      added.push(...storedOf(set, change, workspaceId(i % WORKSPACES), atMs))
    }
  }
  await storeArrivals(client, 'traces', arrivals())
  return added
}

/** Traces that are stored again and again, each time with other ids. */
interface TraceSet {
  readonly service: string
  readonly spansPerTrace: number
  readonly bodies: readonly Template[]
  readonly traceIds: readonly Buffer[]
  readonly hasFinding: (trace: number) => boolean
}

interface Source {
  readonly nextChange: () => number
  readonly small: readonly TraceSet[]
  readonly large: readonly TraceSet[]
}

function createSource(): Source {
  const random = createRandom(1)
  return {
    nextChange: createChanges(1),
    small: Array.from({ length: SMALL_SETS }, (_, i) => createSet(random, TRACES_PER_SET, SMALL_TRACE_SPANS, i)),
    large: Array.from({ length: LARGE_SETS }, (_, i) => createSet(random, 1, LARGE_TRACE_SPANS, i)),
  }
}

function createSet(random: Random, traces: number, spansPerTrace: number, number: number): TraceSet {
  const service = `service-${number % SERVICES}`
  const hasFinding = (trace: number) => traces === 1 || (number * traces + trace) % FINDING_EVERY === 1
  const { bodies, traceIds } = storedTraceBodies(random, {
    traces,
    spansPerTrace,
    service,
    bodies: Math.ceil((traces * spansPerTrace) / SPANS_PER_BODY),
    errorOf: trace => (hasFinding(trace) ? number : undefined),
    markOf: valueMark,
  })
  return { service, spansPerTrace, bodies: bodies.map(body => new Template('traces', body)), traceIds, hasFinding }
}

/** Returns what arrives in a slot. The traces with a finding are known when the arrivals were taken. */
function arrivalsOf({ nextChange, ...source }: Source, { number, fromMs, lengthMs }: Slot, sets: number) {
  const random = createRandom(number)
  const small: StoredTrace[] = []
  const large: StoredTrace[] = []
  // No other slot has these, whatever the order in which slots are stored.
  const changes = Array.from({ length: 2 * sets }, nextChange)
  const arrivals = function* (): Generator<Arrival> {
    for (let i = 0; i < sets; i++) {
      const total = number * sets + i
      const atMs = Math.floor(fromMs + ((i + random()) / sets) * (lengthMs - SPREAD_MS))
      const set = source.small[total % SMALL_SETS] as TraceSet
      const workspace = workspaceId(below(random, WORKSPACES))
      const change = changes[2 * i] as number
      yield* takeSet(set, change, workspace, atMs, random)
      small.push(...storedOf(set, change, workspace, atMs))
      if (total % SETS_PER_LARGE > 0) continue
      const largeNumber = total / SETS_PER_LARGE
      const largeSet = source.large[largeNumber % LARGE_SETS] as TraceSet
      const largeWorkspace = workspaceId(below(random, WORKSPACES))
      const largeChange = changes[2 * i + 1] as number
      yield* takeSet(largeSet, largeChange, largeWorkspace, atMs, random)
      large.push(...storedOf(largeSet, largeChange, largeWorkspace, atMs))
    }
  }
  return { arrivals: arrivals(), small, large }
}

function* takeSet(
  { bodies }: TraceSet,
  change: number,
  workspaceId: string,
  atMs: number,
  random: Random,
): Generator<Arrival> {
  for (const [i, body] of bodies.entries()) {
    const receivedAtMs = Math.floor(atMs + (i === 0 ? 0 : random() * SPREAD_MS))
    yield { workspaceId, receivedAtMs, body: body.take(change, atMs - DELAY_MS + i, number => mix(change, number)) }
  }
}

function storedOf(set: TraceSet, change: number, workspaceId: string, atMs: number): StoredTrace[] {
  return set.traceIds.flatMap((id, trace) => {
    if (!set.hasFinding(trace)) return []
    const value = valueText(mix(change, trace))
    return {
      workspaceId,
      traceId: renewedId(id, change),
      spans: set.spansPerTrace,
      service: set.service,
      sessionId: `session-${value}`,
      path: `/api/${value}`,
      startMs: atMs - DELAY_MS,
    }
  })
}
