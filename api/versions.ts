import { type ClickHouseClient, readsTooMuch } from '../clickhouse/client.ts'
import {
  type FirstOccurrenceRow,
  type ServiceVersionKey,
  selectFirstOccurrences,
  selectVersionSessions,
  selectVersionSpans,
  type VersionSessionsRow,
  type VersionSpansRow,
} from '../clickhouse/queries/releases/select-version-health.ts'
import {
  listVersions,
  listVersionsQuerySchema,
  VERSIONS_MAX,
  type VersionHealth,
  type Versions,
} from '../schemas/http/releases/health.ts'
import { DAY_MS } from '../schemas/units.ts'
import type { FairSlots } from '../shared/concurrency/fair-slots.ts'
import type { Directory } from '../shared/directory/directory.ts'
import type { Route } from '../shared/http/route.ts'
import { resolvedFindings } from './findings/work/resolved-findings.ts'
import { queryDirectory } from './http/directory.ts'
import { rfc3339FromUnixMs } from './http/format-time.ts'
import { type GuardedRouteDeps, guardedRoute } from './http/guarded-route.ts'
import { invalid, type Outcome } from './http/outcome.ts'
import { filterOf, rangeOf, SERVICES } from './services/range.ts'

interface Deps extends GuardedRouteDeps {
  readonly clickhouse: ClickHouseClient
  readonly directory: Pick<Directory, 'findingWork' | 'findingMerges' | 'resolvedFindings'>
  readonly now: () => number
  /** Slots for reads of the statistics of spans. */
  readonly serviceReads: Pick<FairSlots, 'run'>
}

/** Returns the route that lists versions with their health (docs/api/releases.md#versions). */
export function versionsRoute(deps: Deps): Route {
  const { clickhouse, directory, now, serviceReads } = deps
  return guardedRoute(deps, listVersions, {
    resource: SERVICES,
    query: listVersionsQuerySchema,
    async run({ workspaceId, query, deadline }): Promise<Outcome<Versions>> {
      const range = rangeOf(query, now(), DAY_MS)
      if (!range.ok) return range
      const { fromSeconds, toSeconds } = range.value
      const filter = { ...filterOf(workspaceId, range.value, query), serviceName: query.service }
      const read = async () => {
        const merges = await queryDirectory(directory.findingMerges(workspaceId))
        const { regressed } = await resolvedFindings(deps, { workspaceId, merges }, deadline)
        const [spans, sessions, findings] = await Promise.all([
          selectVersionSpans(clickhouse, filter, deadline),
          selectVersionSessions(clickhouse, filter, deadline),
          selectFirstOccurrences(clickhouse, filter, { merges, others: [...regressed.keys()] }, deadline),
        ])
        return joined(spans, sessions, { findings, regressed })
      }
      try {
        const versions = await serviceReads.run(workspaceId, read, deadline)
        const times = { from: rfc3339FromUnixMs(1_000 * fromSeconds), to: rfc3339FromUnixMs(1_000 * toSeconds) }
        const isCut = versions.length > VERSIONS_MAX
        return { ok: true, value: { ...times, versions: versions.slice(0, VERSIONS_MAX), isCut } }
      } catch (error) {
        if (!readsTooMuch(error)) throw error
        return invalid('sessions of this range would read too much: choose a shorter time by "from" and "to"')
      }
    },
  })
}

interface Occurrences {
  readonly findings: readonly FirstOccurrenceRow[]
  readonly regressed: ReadonlyMap<string, readonly string[]>
}

/** Joins what is known of versions, the latest first. */
function joined(
  spans: readonly VersionSpansRow[],
  sessions: readonly VersionSessionsRow[],
  { findings, regressed }: Occurrences,
): VersionHealth[] {
  const byKey = new Map<string, VersionHealth>()
  const versionOf = ({ service, version }: ServiceVersionKey): VersionHealth => {
    const key = JSON.stringify([service, version])
    const known = byKey.get(key) ?? { service, version, ...NOTHING, findings: { new: 0, regressed: 0 } }
    byKey.set(key, known)
    return known
  }
  for (const row of spans) {
    const timeOf = (seconds: string) => rfc3339FromUnixMs(1_000 * Number(seconds))
    Object.assign(versionOf(row), {
      ...{ spans: Number(row.spans), errors: Number(row.errors) },
      ...{ firstAt: timeOf(row.first), lastAt: timeOf(row.last) },
    })
  }
  for (const row of sessions) {
    Object.assign(versionOf(row), {
      sessions: freeOf(row.sessions, row.erroredSessions, row.crashedSessions),
      people: freeOf(row.people, row.erroredPeople, row.crashedPeople),
    })
  }
  for (const row of findings) {
    if (row.isNew) versionOf(row).findings.new++
    for (const version of regressed.get(row.id) ?? []) versionOf({ service: row.service, version }).findings.regressed++
  }
  const latest = ({ firstAt, lastAt }: VersionHealth) => `${lastAt ?? ''} ${firstAt ?? ''}`
  return [...byKey.values()].sort(
    (a, b) => -compare(latest(a), latest(b)) || compare(a.service, b.service) || compare(a.version, b.version),
  )
}

const NONE = { total: 0, errored: 0, crashed: 0 } as const
const NOTHING = { firstAt: null, lastAt: null, spans: 0, errors: 0, sessions: NONE, people: NONE } as const

function freeOf(total: string, errored: string, crashed: string): VersionHealth['sessions'] {
  return { total: Number(total), errored: Number(errored), crashed: Number(crashed) }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
