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
  if (event.type === 'test') return { title: 'Test message', changed: 'Messages of this rule arrive here.' }
  const { title, changed } =
    'finding' in event.data ? ofFinding(event as FindingEvent) : ofMeasured(event as MeasuredEvent)
  return { title, changed: oneLine(changed, SENTENCE_MAX_CHARACTERS) }
}

/** Returns whom or what an event concerns: a service, else a surface, else the workspace. */
export function subjectOf({ data }: AlertEvent): string {
  const service = 'finding' in data ? data.finding.service : 'service' in data ? data.service : undefined
  return shortName(service ?? '') || shortName(data.surface?.name ?? '') || shortName(data.workspaceId)
}

function ofFinding(event: FindingEvent): Sentences {
  const { type, message } = event.data.finding
  const { label, changed } = findingChange(event)
  const error = [shortName(type), oneLine(message, 200)].filter(text => text !== '').join(': ')
  return { title: `${label} in ${subjectOf(event)}: ${error || 'no message'}`, changed }
}

function findingChange({ type, data }: FindingEvent): { label: string; changed: string } {
  const release = shortName(data.finding.release ?? '')
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
        : { label: 'Finding spikes', changed: `It occurs more often than usual.${hits(data, 'occurred', 'times')}` }
    case 'finding.spreading':
      return data.resolved
        ? {
            label: 'Finding no longer spreads',
            changed: `It hits fewer people than before.${hits(data, 'hit', 'people')}`,
          }
        : { label: 'Finding spreads', changed: `It hits many people.${hits(data, 'hit', 'people')}` }
    case 'finding.changed':
    case 'finding.commented':
      return memberChange(data.changed)
  }
}

function hits({ measured }: FindingEvent['data'], verb: string, unit: string): string {
  if (!measured) return ''
  const { value, threshold, minutes } = measured
  const times = `${formatNumber(value)} ${unit} within ${duration(minutes)}`
  return ` It ${verb} ${times}. The threshold is ${formatNumber(threshold)}.`
}

/** How each action is called in a title, and the sentence about it without who did it. */
const ACTIONS: Readonly<Record<Changed['action'], readonly [label: string, did: (change: Changed) => string]>> = {
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
  return { label, changed: `${personName(change.by)} ${did(change)}.` }
}

/** The texts from which a title is made. */
interface MeasuredTexts {
  readonly subject: string
  readonly what: string
  readonly value: string
}

/** Titles of conditions that have begun, and of those that have ended. */
const MEASURED_TITLES: Readonly<
  Record<MeasuredEvent['type'], (texts: MeasuredTexts) => readonly [begun: string, ended: string]>
> = {
  'metric.threshold': ({ subject, what, value }) => [
    `${what} in ${subject}: ${value}`,
    `Within the threshold again: ${what} in ${subject}: ${value}`,
  ],
  'service.errors': ({ subject, value }) => [
    `Many errors in ${subject}: ${value}`,
    `Errors in ${subject} are back to normal: ${value}`,
  ],
  'service.latency': ({ subject, value }) => [`${subject} is slow: ${value}`, `${subject} is fast again: ${value}`],
  'surface.silent': ({ subject }) => [`${subject} is silent`, `${subject} sends data again`],
  'pipeline.dead_letters': ({ subject, value }) => [
    `Dead letters in ${subject}: ${value}`,
    `Dead letters in ${subject} are back to normal: ${value}`,
  ],
  'pipeline.quota': ({ subject, value }) => [
    `${subject} has used much of its quota: ${value}`,
    `${subject} has quota again: ${value} used`,
  ],
  'pipeline.late': ({ subject, value }) => [
    `Data of ${subject} is late: ${value}`,
    `Data of ${subject} is on time again: ${value}`,
  ],
}

function ofMeasured(event: MeasuredEvent): Sentences {
  const { measured, resolved } = event.data
  const what = shortName(measured.what)
  const value = quantity(measured.value, measured)
  const [begun, ended] = MEASURED_TITLES[event.type]({ subject: subjectOf(event), what, value })
  // A name such as `p95` keeps its case.
  const start = what.replace(/^[a-z](?=[a-z]* )/, letter => letter.toUpperCase())
  const threshold = quantity(measured.threshold, measured)
  return {
    title: resolved ? ended : begun,
    changed: `${start}: ${value} within ${duration(measured.minutes)}. The threshold is ${threshold}.`,
  }
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
  return subjects.size === 1 ? `${start} in ${[...subjects][0]}` : start
}
