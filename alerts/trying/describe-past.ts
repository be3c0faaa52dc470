import type { ClickHouseClient } from '../../clickhouse/client.ts'
import {
  type OccurrencePlace,
  type PastOccurrence,
  selectLastPlaces,
  selectOccurrencesAt,
  selectPeopleBefore,
} from '../../clickhouse/queries/findings/select-past-findings.ts'
import type { DescribedFinding } from '../../findings/describe-finding.ts'
import type { FindingOccasion } from '../../schemas/records/alerts.ts'
import { type PastOccasion, type PastOf, WINDOW_MS } from './past-findings.ts'

/** An occasion, and its finding as rules and titles need it. */
interface DescribedPast extends Pick<PastOccasion, 'occasion'> {
  readonly described: DescribedFinding
}

/** Occasions whose findings are described, and whether their numbers of people matter. */
interface Described {
  readonly occasions: readonly PastOccasion[]
  readonly withPeople: boolean
}

/** Describes the findings of occasions, each by one of its occurrences. Leaves out those of which nothing is retained. */
export async function describePast(
  clickhouse: ClickHouseClient,
  of: PastOf,
  { occasions, withPeople }: Described,
  signal: AbortSignal,
): Promise<DescribedPast[]> {
  const unplaced = occasions.flatMap(({ occasion, place }) => (place === undefined ? [currentId(of, occasion)] : []))
  const last = await selectLastPlaces(clickhouse, of, [...new Set(unplaced)], signal)
  const lastOf = new Map(last.map(place => [place.findingId, place]))
  const placed = occasions.map(({ occasion, place = lastOf.get(currentId(of, occasion)) }) => ({ occasion, place }))
  const places = new Map(placed.flatMap(({ place }) => (place === undefined ? [] : [[keyOf(place), place] as const])))
  const read = await selectOccurrencesAt(clickhouse, of.workspaceId, [...places.values()], signal)
  const occurrences = new Map(read.map(one => [keyOf(one), one]))
  const peopleOf = withPeople ? await countPeople(clickhouse, of, occasions, signal) : () => 0
  return placed.flatMap(({ occasion, place }) => {
    const occurrence = place && occurrences.get(keyOf(place))
    if (occurrence === undefined) return []
    return [{ occasion, described: describe(currentId(of, occasion), occurrence, peopleOf(occasion)) }]
  })
}

/** Returns the people whom findings had concerned when they were new, and at the last of their other occasions. */
async function countPeople(
  clickhouse: ClickHouseClient,
  of: PastOf,
  occasions: readonly PastOccasion[],
  signal: AbortSignal,
): Promise<(occasion: FindingOccasion) => number> {
  const isNew = ({ kind }: FindingOccasion) => kind === 'finding.created'
  const untilOf = (some: readonly PastOccasion[]) => {
    const times = some.map(({ occasion }) => [currentId(of, occasion), Date.parse(occasion.at) + WINDOW_MS] as const)
    return new Map(times.toSorted(([, a], [, b]) => a - b))
  }
  const [created, others] = [true, false].map(wanted => occasions.filter(({ occasion }) => isNew(occasion) === wanted))
  const people = (some: readonly PastOccasion[] = []) => selectPeopleBefore(clickhouse, of, untilOf(some), signal)
  const [whenNew, later] = [await people(created), await people(others)]
  return occasion => (isNew(occasion) ? whenNew : later).get(currentId(of, occasion)) ?? 0
}

const currentId = ({ merges }: PastOf, { findingId }: PastOccasion['occasion']) => merges.get(findingId) ?? findingId
const keyOf = ({ variantId, receivedMs }: Pick<OccurrencePlace, 'variantId' | 'receivedMs'>) =>
  `${variantId} ${receivedMs}`

function describe(findingId: string, occurrence: PastOccurrence, people: number): DescribedFinding {
  const { type, message, service, version, environment, surfaceId, receivedMs } = occurrence
  return {
    ...{ findingId, type, message, service, release: version, environment, surfaceId },
    ...{ occurrences: 1, sessions: 0, people, firstSeenMs: receivedMs, lastSeenMs: receivedMs, occurredMs: receivedMs },
    ...{ frame: undefined, chain: [], traceId: '', sessionId: '' },
  }
}
