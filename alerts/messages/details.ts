import type { AlertEvent, FindingEvent, MeasuredEvent } from '../../schemas/http/alerts/events.ts'
import { linkUrl, oneLine } from './clean-text.ts'
import { counted, formatNumber, shortName, shownTime } from './words.ts'

const CODE_MAX_CHARACTERS = 200
const CAUSE_MAX_CHARACTERS = 160
const COMMENT_MAX_CHARACTERS = 800

/** A name and its value. */
interface Fact {
  readonly name: string
  readonly value: string
}

/** A link, and the text to show for it, which is always ours. */
interface Link {
  readonly text: string
  readonly url: string
}

/** Details of an event. Lists are empty and fields absent where the event has none. */
export interface Details {
  /** At most eight. */
  readonly facts: readonly Fact[]
  /** The innermost frame of the application. */
  readonly frame?: { readonly place: string; readonly sourceLine?: string }
  /** The exceptions behind a finding, the immediate cause first. */
  readonly chain: readonly string[]
  /** The comment of a member. */
  readonly comment?: string
  readonly links: readonly Link[]
}

/** Returns the details of an event. */
export function detailsOf(data: AlertEvent['data']): Details {
  if ('finding' in data) return findingDetails(data)
  if ('measured' in data) return measuredDetails(data)
  return { facts: factsOf({ Surface: data.surface?.name }), chain: [], links: [] }
}

function findingDetails({ finding, surface, frame, chain, changed, links }: FindingEvent['data']): Details {
  const facts = factsOf({
    Service: finding.service,
    Surface: surface?.name,
    Environment: finding.environment,
    Release: finding.release,
    Occurrences: formatNumber(finding.occurrences),
    Hit: hitsOf(finding),
    'First seen': shownTime(finding.firstSeenAt),
    'Last seen': shownTime(finding.lastSeenAt),
  })
  const comment = oneLine(changed?.text ?? '', COMMENT_MAX_CHARACTERS)
  return {
    facts,
    ...(frame && { frame: shownFrame(frame) }),
    chain: chain.map(({ type, message }) => oneLine(`${type}: ${message}`, CAUSE_MAX_CHARACTERS)),
    ...(comment !== '' && { comment }),
    links: linksOf({
      'Open the finding': links.finding,
      'Acknowledge, resolve or ignore': links.act,
      'Open the trace': links.trace,
      'Watch the recording': links.recording,
    }),
  }
}

/** Returns whom a finding hit, such as `12 people, 40 sessions`. It is empty for a finding of no session. */
function hitsOf({ people, sessions }: FindingEvent['data']['finding']): string {
  return [
    ...(people > 0 ? [counted(people, 'person', 'people')] : []),
    ...(sessions > 0 ? [counted(sessions, 'session')] : []),
  ].join(', ')
}

function shownFrame(frame: NonNullable<FindingEvent['data']['frame']>): NonNullable<Details['frame']> {
  const name = shortName(frame.function)
  // The end of a path distinguishes it from others.
  const file = oneLine(frame.file.slice(-CODE_MAX_CHARACTERS), CODE_MAX_CHARACTERS)
  const line = frame.line > 0 ? `:${frame.line}` : ''
  const sourceLine = oneLine(frame.sourceLine ?? '', CODE_MAX_CHARACTERS)
  return { place: `${name && `${name} in `}${file || 'unknown file'}${line}`, ...(sourceLine !== '' && { sourceLine }) }
}

function measuredDetails({ service, surface, environment, measured, links }: MeasuredEvent['data']): Details {
  return {
    facts: [
      ...factsOf({ Service: service, Surface: surface?.name, Environment: environment }),
      ...factsOf({ Expression: measured.expression }, 2 * CODE_MAX_CHARACTERS),
    ],
    chain: [],
    links: linksOf({ 'Open the chart': links.chart }),
  }
}

function factsOf(values: Readonly<Record<string, string | undefined>>, maxCharacters = 100): Fact[] {
  return Object.entries(values)
    .map(([name, value]) => ({ name, value: oneLine(value ?? '', maxCharacters) }))
    .filter(({ value }) => value !== '')
}

function linksOf(urls: Readonly<Record<string, string | undefined>>): Link[] {
  return Object.entries(urls).flatMap(([text, value]) => {
    const url = linkUrl(value ?? '')
    return url === undefined ? [] : [{ text, url }]
  })
}
