import type { DescribedFinding } from '../../findings/describe-finding.ts'
import type { Changed, FindingEvent, Measured, MeasuredEvent } from '../../schemas/http/alerts/events.ts'
import type { FindingOccasion, MeasuredOccasion } from '../../schemas/records/alerts.ts'
import { COMMENT_MAX_CHARACTERS, type FindingEntry } from '../../schemas/records/change.ts'

/** The most characters of a name, a message, a file, the id of a session, an expression, a unit and a URL in an event. */
const [NAME, MESSAGE, FILE, SESSION, EXPRESSION, UNIT, URL_MAX] = [200, 1_000, 500, 1_000, 2_000, 30, 2_000]
const CHAIN_MAX = 8
/** A recording is shown from a moment before the error on. */
const BEFORE_ERROR_MS = 5_000

const cut = (text: string, max: number) => text.slice(0, max).toWellFormed()
const timeOf = (ms: number) => new Date(ms).toISOString()

/** Where the pages of a finding are, and how its surface and the members of its workspace are called. */
interface EventNames {
  /** The address of the console, `https://penstock.example/console/`. */
  readonly consoleUrl: string
  readonly surface: { readonly id: string; readonly name: string } | undefined
  /** Name by user id. */
  readonly people: ReadonlyMap<string, string>
}

/** Returns the event of an occasion about a finding. */
export function eventOf(occasion: FindingOccasion, described: DescribedFinding, names: EventNames): FindingEvent {
  const { id, kind, workspaceId, at, entry, measured } = occasion
  const resolved = occasion.resolved ?? (kind === 'finding.changed' && entry?.action === 'resolved')
  const { surface, consoleUrl } = names
  const { findingId, frame, chain, traceId, occurredMs } = described
  // A session with a longer id has no link.
  const sessionId = encodeURIComponent(described.sessionId).length > SESSION ? '' : described.sessionId
  const link = (path: string) => new URL(path, consoleUrl).href
  const session = encodeURIComponent(sessionId)
  return {
    type: kind,
    timestamp: at,
    data: {
      ...{ id, workspaceId, resolved },
      ...(surface && { surface: { id: surface.id, name: cut(surface.name, NAME) } }),
      finding: presentFinding(described),
      ...(measured && { measured: presentMeasured(measured) }),
      ...(entry && { changed: changedBy(entry, names.people) }),
      ...(frame && {
        frame: {
          ...{ function: cut(frame.function, NAME), file: frame.file.slice(-FILE).toWellFormed(), line: frame.line },
          ...(frame.sourceLine !== '' && { sourceLine: cut(frame.sourceLine.trim(), NAME) }),
        },
      }),
      chain: chain
        .slice(0, CHAIN_MAX)
        .map(link => ({ type: cut(link.type, NAME), message: cut(link.message, MESSAGE) })),
      ...(traceId !== '' && { trace: traceId }),
      ...(sessionId !== '' && { recording: { sessionId, at: timeOf(occurredMs) } }),
      links: {
        finding: link(`findings/${findingId}`),
        ...(traceId !== '' && { trace: link(`traces/${traceId}`) }),
        ...(sessionId !== '' && { recording: link(`sessions/${session}?t=${occurredMs - BEFORE_ERROR_MS}`) }),
      },
    },
  }
}

function presentFinding(described: DescribedFinding): FindingEvent['data']['finding'] {
  const { findingId, type, message, service, environment, release, occurrences, sessions, people } = described
  return {
    id: findingId,
    ...{ type: cut(type, NAME), message: cut(message, MESSAGE), service: cut(service, NAME) },
    ...(environment !== '' && { environment: cut(environment, NAME) }),
    ...(release !== '' && { release: cut(release, NAME) }),
    ...{ occurrences, sessions, people },
    ...{ firstSeenAt: timeOf(described.firstSeenMs), lastSeenAt: timeOf(described.lastSeenMs) },
  }
}

function changedBy(
  { by, via, action, assignee, text, findingId }: FindingEntry,
  people: EventNames['people'],
): Changed {
  const person = (userId: string) => {
    const name = people.get(userId)
    return { userId, ...(name !== undefined && { name: cut(name, NAME) }) }
  }
  return {
    by: by && person(by.userId),
    ...(via !== undefined && { via: { receiver: cut(via.receiver, NAME) } }),
    action,
    ...(assignee !== undefined && { assignee: person(assignee) }),
    ...(text !== undefined && { text: cut(text, COMMENT_MAX_CHARACTERS) }),
    ...(findingId !== undefined && { findingId }),
  }
}

/** Returns the event of an occasion about a value that is measured. */
export function measuredEventOf(
  { id, kind, workspaceId, at, service, environment, measured, resolved = false }: MeasuredOccasion,
  { consoleUrl, surface }: Omit<EventNames, 'people'>,
): MeasuredEvent {
  return {
    type: kind,
    timestamp: at,
    data: {
      ...{ id, workspaceId, resolved },
      ...(surface && { surface: { id: surface.id, name: cut(surface.name, NAME) } }),
      ...(service !== undefined && { service: cut(service, NAME) }),
      ...(environment !== undefined && { environment: cut(environment, NAME) }),
      measured: presentMeasured(measured),
      links: { chart: new URL(chartOf({ kind, service, environment }, consoleUrl), consoleUrl).href },
    },
  }
}

/** Returns the page of the console that shows a value. */
function chartOf(
  { kind, service, environment }: Pick<MeasuredOccasion, 'kind' | 'service' | 'environment'>,
  consoleUrl: string,
): string {
  if (kind === 'metric.threshold') return 'metrics'
  if (kind === 'surface.silent') return 'settings/surfaces'
  if (service === undefined) return 'pipeline'
  const page = `services/${encodeURIComponent(service)}`
  const query = environment === undefined ? '' : `?environment=${encodeURIComponent(environment)}`
  const fits = [page + query, page].find(path => consoleUrl.length + path.length <= URL_MAX)
  return fits ?? 'services'
}

function presentMeasured({ what, unit, expression, ...measured }: MeasuredOccasion['measured']): Measured {
  return {
    ...{ what: cut(what, NAME), ...measured, unit: cut(unit, UNIT) },
    ...(expression !== undefined && { expression: cut(expression, EXPRESSION) }),
  }
}
