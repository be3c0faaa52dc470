import type {
  AlertEvent,
  AlertEventType,
  Changed,
  FindingEvent,
  MeasuredEvent,
} from '../../schemas/http/alerts/events.ts'
import { oneLine } from './clean-text.ts'
import { counted, duration, formatNumber, personName, quantity, shortName } from './words.ts'

const SENTENCE_MAX_CHARACTERS = 400

/** The title of an event and the sentences that state what changed, each in one line. */
interface Sentences {
  readonly title: string
  readonly changed: string
}

/** Returns the sentences about an event. */
export function sentencesOf(event: AlertEvent): Sentences {
  if (event.type === 'test') return { title: 'Test message', changed: 'Messages to this receiver arrive here.' }
  const { title, changed } =
    'finding' in event.data ? ofFinding(event as FindingEvent) : ofMeasured(event as MeasuredEvent)
  return { title, changed: oneLine(changed, SENTENCE_MAX_CHARACTERS) }
}

/** Returns whom or what an event concerns: a service, else a surface, else the workspace. */
export function subjectOf({ data }: AlertEvent): string {
  const service = 'finding' in data ? data.finding.service : 'service' in data ? data.service : undefined
  return shortName(service ?? '') || shortName(data.surface?.name ?? '') || shortName(data.workspaceId)
}

/** How a title names what has neither a service nor a surface. */
const WORKSPACE = 'the workspace'

/** Returns how a title names whom or what an event concerns. */
function placeOf(event: AlertEvent): string {
  const subject = subjectOf(event)
  return subject === shortName(event.data.workspaceId) ? WORKSPACE : subject
}

function ofFinding(event: FindingEvent): Sentences {
  const { type, message } = event.data.finding
  const { label, changed } = findingChange(event)
  const error = [shortName(type), oneLine(message, 200)].filter(text => text !== '').join(': ')
  return { title: `${label} in ${placeOf(event)}: ${error || 'no message'}`, changed }
}

function findingChange({ type, data }: FindingEvent): { label: string; changed: string } {
  const release = shortName(data.finding.release ?? '')
  if (data.resolved && !data.measured) {
    return data.changed ? memberChange(data.changed) : { label: 'Finding resolved', changed: 'It is resolved.' }
  }
  switch (type) {
    case 'finding.created':
      return { label: 'New finding', changed: `It occurred for the first time${release && `, in release ${release}`}.` }
    case 'finding.regressed':
      return {
        label: 'Finding is back',
        changed: `It was resolved, and occurs again${release && ` in release ${release}`}.`,
      }
    case 'finding.unignored':
      return { label: 'Finding is open again', changed: 'It is no longer ignored.' }
    case 'finding.spiking':
      return data.resolved
        ? { label: 'Spike is over', changed: 'It no longer occurs more often than usual.' }
        : {
            label: 'Finding spikes',
            changed: `It occurs more often than usual.${hits(data, 'occurred', ['time', 'times'])}`,
          }
    case 'finding.spreading':
      return data.resolved
        ? { label: 'Finding no longer spreads', changed: 'It hits fewer people again.' }
        : { label: 'Finding spreads', changed: `It hits many people.${hits(data, 'hit', ['person', 'people'])}` }
    case 'finding.changed':
    case 'finding.commented':
      return memberChange(data.changed)
  }
}

function hits({ measured }: FindingEvent['data'], verb: string, [unit, units]: readonly [string, string]): string {
  if (!measured) return ''
  const { value, threshold, minutes } = measured
  const times = `${counted(value, unit, units)} within ${duration(minutes)}`
  return ` It ${verb} ${times}. The threshold is ${formatNumber(threshold)}.`
}

/** How each action is called in a title, and the sentence about it without who did it. */
const ACTIONS: Readonly<Record<Changed['action'], readonly [label: string, did: (change: Changed) => string]>> = {
  acknowledged: ['Finding acknowledged', () => 'acknowledged it'],
  resolved: ['Finding resolved', () => 'resolved it'],
  ignored: ['Finding ignored', () => 'ignored it'],
  reopened: ['Finding reopened', () => 'reopened it'],
  assigned: ['Finding assigned', ({ assignee }) => `assigned it to ${assignee ? personName(assignee) : 'a member'}`],
  unassigned: ['Finding unassigned', () => 'removed its assignee'],
  commented: ['Comment on a finding', () => 'commented on it'],
  merged: ['Findings merged', ({ findingId }) => `merged ${findingId ?? 'another finding'} into it`],
  split: ['Finding split', ({ findingId }) => `split it from ${findingId ?? 'another finding'}`],
  split_off: ['Finding split', ({ findingId }) => `split ${findingId ?? 'another finding'} from it`],
}

function memberChange(change: Changed | undefined): { label: string; changed: string } {
  if (!change) return { label: 'Finding changed', changed: 'A member changed it.' }
  const [label, did] = ACTIONS[change.action]
  const { by, via } = change
  const how = via === undefined ? '' : ` through a message to ${shortName(via.receiver) || 'a receiver'}`
  return { label, changed: `${via === undefined ? personName(by) : 'Somebody'} ${did(change)}${how}.` }
}

/** The texts from which sentences about a value are made. */
interface MeasuredTexts {
  readonly place: string
  readonly what: string
  readonly value: string
  readonly threshold: string
  readonly time: string
  /** The value as a number of requests. */
  readonly requests: string
}

/** Sentences about a condition that begins, and about one that has ended, whose value is the last that met it. */
type MeasuredSentences = (texts: MeasuredTexts) => { readonly begun: Sentences; readonly ended: Sentences }

const beyond = ({ value, threshold }: MeasuredTexts) =>
  `The last value beyond the threshold of ${threshold} was ${value}.`

const MEASURED: Readonly<Record<MeasuredEvent['type'], MeasuredSentences>> = {
  'metric.threshold': texts => ({
    begun: {
      title: `${texts.what} in ${texts.place}: ${texts.value}`,
      changed: `${capitalized(texts.what)}: ${texts.value}, beyond the threshold of ${texts.threshold} for ${texts.time}.`,
    },
    ended: { title: `${texts.what} in ${texts.place} is within its threshold again`, changed: beyond(texts) },
  }),
  'service.errors': texts => ({
    begun: { title: `Many errors in ${texts.place}: ${texts.value}`, changed: withinTime(texts) },
    ended: { title: `Errors in ${texts.place} are back to normal`, changed: beyond(texts) },
  }),
  'service.latency': texts => ({
    begun: { title: `${texts.place} is slow: ${texts.value}`, changed: withinTime(texts) },
    ended: { title: `${texts.place} is fast again`, changed: beyond(texts) },
  }),
  'surface.silent': ({ place, time }) => ({
    begun: { title: `${place} is silent`, changed: `It was sent nothing for ${time}.` },
    ended: { title: `${place} sends data again`, changed: 'It was sent something again.' },
  }),
  'pipeline.dead_letters': ({ place, value, requests, time }) => ({
    begun: {
      title: `Dead letters in ${place}: ${value}`,
      changed: `Kept as dead letters within ${time}: ${requests}.`,
    },
    ended: {
      title: `No new dead letters in ${place}`,
      changed: `Kept as dead letters within ${time} before that: ${requests}.`,
    },
  }),
  'pipeline.quota': ({ place, value, requests, time }) => ({
    begun: { title: `${place} is over a quota: ${value}`, changed: `Refused within ${time}: ${requests}.` },
    ended: {
      title: `${place} is within its quotas again`,
      changed: `Refused within ${time} before that: ${requests}.`,
    },
  }),
  'pipeline.late': ({ place, value, threshold }) => ({
    begun: {
      title: `Data of ${place} is late: ${value}`,
      changed: `The oldest request that is not stored is ${value} old. The threshold is ${threshold}.`,
    },
    ended: {
      title: `Data of ${place} is on time again`,
      changed: `The oldest request that was not stored was ${value} old before that.`,
    },
  }),
}

function withinTime({ what, value, time, threshold }: MeasuredTexts): string {
  return `${capitalized(what)}: ${value} within ${time}. The threshold is ${threshold}.`
}

function ofMeasured(event: MeasuredEvent): Sentences {
  const { measured, resolved } = event.data
  const texts = {
    place: placeOf(event),
    what: shortName(measured.what),
    value: quantity(measured.value, measured),
    threshold: quantity(measured.threshold, measured),
    time: duration(measured.minutes),
    requests: counted(measured.value, 'request'),
  }
  const { title, changed } = MEASURED[event.type](texts)[resolved ? 'ended' : 'begun']
  // Other names keep their case.
  return { title: title.startsWith(WORKSPACE) ? capitalized(title) : title, changed }
}

/** Begins a text with a capital letter. A name such as `p95` keeps its case. */
function capitalized(text: string): string {
  return text.replace(/^[a-z](?=[a-z]* )/, letter => letter.toUpperCase())
}

/** Nouns for several events of one type, which follow their number. */
const PLURALS: Readonly<Record<AlertEventType, string>> = {
  'finding.created': 'new findings',
  'finding.regressed': 'findings that are back',
  'finding.unignored': 'findings that are open again',
  'finding.spiking': 'spiking findings',
  'finding.spreading': 'spreading findings',
  'finding.changed': 'changes of findings',
  'finding.commented': 'comments on findings',
  'metric.threshold': 'values beyond their thresholds',
  'service.errors': 'alerts about errors',
  'service.latency': 'alerts about slow requests',
  'surface.silent': 'silent surfaces',
  'pipeline.dead_letters': 'alerts about dead letters',
  'pipeline.quota': 'alerts about quotas',
  'pipeline.late': 'alerts about late data',
  test: 'test messages',
}

/** Returns the title of several events: their number and type, else the name of their rule, and the subject that they share. */
export function digestTitle(events: readonly AlertEvent[], ruleName: string): string {
  const kinds = new Set(events.map(({ type, data }) => `${type} ${data.resolved}`))
  const subjects = new Set(events.map(subjectOf))
  const [first] = events
  const resolved = events.every(({ data }) => data.resolved)
  const isOneKind = first !== undefined && kinds.size === 1 && !resolved
  const start = isOneKind
    ? `${formatNumber(events.length)} ${PLURALS[first.type]}`
    : `${ruleName}: ${counted(events.length, 'alert')}${resolved ? ' ended' : ''}`
  return first && subjects.size === 1 ? `${start} in ${placeOf(first)}` : start
}
