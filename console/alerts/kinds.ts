import type { AlertRule } from '../api/generated/client.ts'

/** A kind of event that rules can call for. */
export type Kind = AlertRule['kinds'][number]
/** A field of a rule that measures. Each belongs to one kind. */
export type Measure = 'spiking' | 'spreading' | 'metric' | 'errors' | 'latency' | 'silent'
/** Conditions that are lists of values. */
export const LIST_CONDITIONS = ['surfaces', 'services', 'environments', 'releases', 'types'] as const
/** A condition that is a list of values. */
export type ListCondition = (typeof LIST_CONDITIONS)[number]
/** A condition of a rule. */
type Condition = ListCondition | 'minPeople'

/** A kind of event for people. */
interface NamedKind {
  readonly name: string
  /** States when receivers are called. */
  readonly when: string
  readonly measure?: Measure
}

/** Each kind of event for people. A test compares the kinds and their measures with those of the API. */
export const KINDS: Readonly<Record<Kind, NamedKind>> = {
  'finding.created': { name: 'A new finding', when: 'It occurs for the first time.' },
  'finding.regressed': { name: 'A finding is back', when: 'It was resolved, and occurs again.' },
  'finding.unignored': {
    name: 'A finding is no longer ignored',
    when: 'It occurs after the time for which it was ignored, or as often.',
  },
  'finding.spiking': {
    name: 'A finding spikes',
    when: 'It occurs far more often than at this hour of the last seven days.',
    measure: 'spiking',
  },
  'finding.spreading': {
    name: 'A finding spreads',
    when: 'It concerns many people within a time.',
    measure: 'spreading',
  },
  'finding.changed': {
    name: 'Work on a finding',
    when: 'A member resolves, ignores, reopens, assigns, merges or splits it.',
  },
  'finding.commented': { name: 'A comment', when: 'A member comments on a finding.' },
  'service.errors': {
    name: 'A service fails',
    when: 'Too many of the calls that it received have failed.',
    measure: 'errors',
  },
  'service.latency': {
    name: 'A service is slow',
    when: 'One in twenty of the calls that it received takes too long.',
    measure: 'latency',
  },
  'surface.silent': {
    name: 'A surface is silent',
    when: 'It was sent something before, and now nothing for a time.',
    measure: 'silent',
  },
  'metric.threshold': {
    name: 'A metric crosses a value',
    when: 'A series stays above or below a value for a time.',
    measure: 'metric',
  },
  'pipeline.dead_letters': { name: 'Data is not stored', when: 'Something was refused, and is kept as a dead letter.' },
  'pipeline.quota': { name: 'A quota is used up', when: 'Something is not accepted until there is room again.' },
  'pipeline.late': { name: 'Data is late', when: 'Something is not stored five minutes after it was accepted.' },
}

/** Kinds as the form groups them. */
export const KIND_GROUPS: readonly { readonly name: string; readonly kinds: readonly Kind[] }[] = [
  { name: 'Findings', kinds: kindsOf('finding') },
  { name: 'Services, surfaces, metrics', kinds: [...kindsOf('service'), ...kindsOf('surface'), ...kindsOf('metric')] },
  { name: 'The pipeline', kinds: kindsOf('pipeline') },
]

function kindsOf(subject: string): Kind[] {
  return (Object.keys(KINDS) as Kind[]).filter(kind => subjectOf(kind) === subject)
}

function subjectOf(kind: Kind): string {
  return kind.slice(0, kind.indexOf('.'))
}

const CONDITIONS: Readonly<Record<string, readonly Condition[]>> = {
  finding: [...LIST_CONDITIONS, 'minPeople'],
  service: ['services', 'environments'],
  surface: ['surfaces'],
}

/** Returns the conditions that all of these kinds can meet. */
export function conditionsOf(kinds: readonly Kind[]): Condition[] {
  const [first, ...others] = kinds.map(kind => CONDITIONS[subjectOf(kind)] ?? [])
  return (first ?? []).filter(condition => others.every(other => other.includes(condition)))
}

/** Returns a kind of event for people. An event of a newer service may have a kind that this page does not know. */
export function nameOfKind(kind: string): string {
  if (kind === 'test') return 'A test'
  return KINDS[kind as Kind]?.name ?? kind
}
