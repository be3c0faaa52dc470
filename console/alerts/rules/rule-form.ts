import type { AlertRule } from '../../api/generated/client.ts'
import { conditionsOf, KINDS, type Kind, LIST_CONDITIONS, type ListCondition, type Measure } from '../kinds.ts'
import { faultOfNumber, faultOfText, NUMBERS, type NumberField } from './number-fields.ts'

type TextField = NumberField | 'name' | 'metric.expression' | 'quietHours.from' | 'quietHours.to' | 'quietHours.zone'
/** A field of the form, by its name in faults of the API. */
export type RuleField = TextField | ListCondition | 'kinds' | 'receivers'
/** Why fields are not accepted. */
export type RuleFaults = Readonly<Partial<Record<RuleField, string>>>

/** A rule as it is typed. What does not belong to its kinds stays, and is left out of the rule. */
export interface RuleForm {
  readonly texts: Readonly<Record<TextField, string>>
  readonly kinds: readonly Kind[]
  /** Undefined calls every receiver. */
  readonly receivers: readonly string[] | undefined
  readonly lists: Readonly<Record<ListCondition, readonly string[]>>
  /** Values that are typed, and not in their lists yet. */
  readonly typed: Readonly<Partial<Record<ListCondition, string>>>
  readonly isAbove: boolean
  readonly isQuiet: boolean
  readonly resolved: boolean | undefined
}

/** The form of a new rule. */
export function emptyForm(): RuleForm {
  const numbers = Object.fromEntries(Object.keys(NUMBERS).map(field => [field, ''])) as Record<NumberField, string>
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone
  return {
    texts: {
      ...numbers,
      'spreading.minutes': '60',
      'metric.minutes': '5',
      'errors.minutes': '5',
      'errors.atLeast': '20',
      'latency.minutes': '5',
      'latency.atLeast': '20',
      'silent.minutes': '15',
      name: '',
      'metric.expression': '',
      'quietHours.from': '22:00',
      'quietHours.to': '07:00',
      'quietHours.zone': zone,
    },
    kinds: [],
    receivers: undefined,
    lists: { surfaces: [], services: [], environments: [], releases: [], types: [] },
    typed: {},
    isAbove: true,
    isQuiet: false,
    resolved: undefined,
  }
}

/** Returns the form of a rule. */
export function formOf(rule: AlertRule): RuleForm {
  const empty = emptyForm()
  const { name, kinds, receivers, quietHours, metric, resolved } = rule
  const numbers = Object.keys(NUMBERS).flatMap(field => {
    const [outer = '', inner] = field.split('.')
    const value = rule[outer as 'minPeople'] as unknown
    const number = inner === undefined ? value : (value as Record<string, unknown> | undefined)?.[inner]
    return number === undefined ? [] : [[field, String(number)] as const]
  })
  const threshold = metric?.above ?? metric?.below
  return {
    texts: {
      ...empty.texts,
      ...Object.fromEntries(numbers),
      name,
      ...(metric && { 'metric.expression': metric.expression, 'metric.value': String(threshold) }),
      ...(quietHours && {
        'quietHours.from': quietHours.from,
        'quietHours.to': quietHours.to,
        'quietHours.zone': quietHours.zone,
      }),
    },
    kinds,
    receivers,
    typed: {},
    lists: { ...empty.lists, ...Object.fromEntries(LIST_CONDITIONS.map(field => [field, rule[field] ?? []])) },
    isAbove: metric?.below === undefined,
    isQuiet: quietHours !== undefined,
    resolved,
  }
}

/** Returns the form with a value of a list that is typed, so that it counts without another key. */
export function withTyped(form: RuleForm, field: ListCondition): RuleForm {
  const value = form.typed[field]?.trim() ?? ''
  const values = form.lists[field]
  const lists = { ...form.lists, [field]: value === '' || values.includes(value) ? values : [...values, value] }
  return { ...form, lists, typed: { ...form.typed, [field]: '' } }
}

/** Returns the rule of a form, or why its fields are not accepted. `others` are the names of the other rules. */
export function ruleOf(
  given: RuleForm,
  others: readonly string[] = [],
): { readonly rule: AlertRule } | { readonly faults: RuleFaults } {
  const form = LIST_CONDITIONS.reduce(withTyped, given)
  const faults = faultsOf(form, others)
  if (Object.keys(faults).length > 0) return { faults }
  const { texts, kinds, receivers, lists, isQuiet, resolved } = form
  const conditions = conditionsOf(kinds)
  const numbers = (field: 'minPeople' | 'everyMinutes') =>
    texts[field] === '' ? {} : { [field]: Number(texts[field]) }
  const measures = measuresOf(kinds).map(measure => [measure, measureOf(form, measure)] as const)
  const rule: AlertRule = {
    name: texts.name,
    kinds: [...kinds],
    ...(receivers && { receivers: [...receivers] }),
    ...Object.fromEntries(
      LIST_CONDITIONS.filter(field => conditions.includes(field) && lists[field].length > 0).map(field => [
        field,
        [...lists[field]],
      ]),
    ),
    ...(conditions.includes('minPeople') && numbers('minPeople')),
    ...Object.fromEntries(measures.filter(([, measure]) => measure !== undefined)),
    ...numbers('everyMinutes'),
    ...(isQuiet && {
      quietHours: { from: texts['quietHours.from'], to: texts['quietHours.to'], zone: texts['quietHours.zone'] },
    }),
    ...(resolved !== undefined && { resolved }),
  }
  return { rule }
}

/** Returns the measures that belong to these kinds. */
export function measuresOf(kinds: readonly Kind[]): Measure[] {
  return [...new Set(kinds.flatMap(kind => KINDS[kind].measure ?? []))]
}

/** Spiking findings that nothing is stated about are measured by the default of the API. */
function measureOf({ texts, isAbove }: RuleForm, measure: Measure): object | undefined {
  const fields = fieldsOf(measure)
  if (measure === 'spiking' && fields.every(field => texts[field] === '')) return undefined
  if (measure === 'metric') {
    const expression = texts['metric.expression']
    const value = Number(texts['metric.value'])
    return { expression, ...(isAbove ? { above: value } : { below: value }), minutes: Number(texts['metric.minutes']) }
  }
  return Object.fromEntries(fields.map(field => [field.slice(measure.length + 1), Number(texts[field])]))
}

function fieldsOf(measure: Measure): NumberField[] {
  return (Object.keys(NUMBERS) as NumberField[]).filter(field => field.startsWith(`${measure}.`))
}

const EXPRESSION_CHARACTERS = 2_000
const VALUES_MAX = 50
const TIME_OF_DAY = /^(?:[01]\d|2[0-3]):[0-5]\d$/

function faultsOf({ texts, kinds, receivers, lists, isQuiet }: RuleForm, others: readonly string[]): RuleFaults {
  const conditions = conditionsOf(kinds)
  const faults: Partial<Record<RuleField, string | undefined>> = {
    name: others.includes(texts.name) ? 'Another rule has this name.' : faultOfText(texts.name),
    kinds: kinds.length === 0 ? 'Choose at least one.' : undefined,
    receivers: receivers && faultOfList(receivers, 'Choose at least one, or every receiver.'),
    everyMinutes: faultOfNumber('everyMinutes', texts.everyMinutes),
    minPeople: conditions.includes('minPeople') ? faultOfNumber('minPeople', texts.minPeople) : undefined,
  }
  for (const field of conditions) if (field !== 'minPeople') faults[field] = faultOfList(lists[field])
  for (const measure of measuresOf(kinds)) {
    const fields = fieldsOf(measure)
    const isOptional = measure === 'spiking' && fields.every(field => texts[field] === '')
    for (const field of fields) faults[field] = faultOfNumber(field, texts[field], { isRequired: !isOptional })
    if (measure === 'metric')
      faults['metric.expression'] = faultOfText(texts['metric.expression'], EXPRESSION_CHARACTERS)
  }
  if (isQuiet) {
    for (const field of ['quietHours.from', 'quietHours.to'] as const)
      faults[field] = TIME_OF_DAY.test(texts[field]) ? undefined : 'Write a time such as 22:00.'
    faults['quietHours.zone'] = isZone(texts['quietHours.zone'])
      ? undefined
      : 'Write a time zone such as Europe/Berlin.'
  }
  return Object.fromEntries(Object.entries(faults).filter(([, fault]) => fault !== undefined))
}

function faultOfList(values: readonly string[], ifEmpty?: string): string | undefined {
  if (values.length === 0) return ifEmpty
  if (values.length > VALUES_MAX) return `At most ${VALUES_MAX}.`
  return values.map(value => faultOfText(value)).find(fault => fault !== undefined)
}

function isZone(name: string): boolean {
  try {
    return name.length <= 64 && new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false // The constructor refuses unknown names.
  }
}

/** Returns the field of a rule and the fault of a message of the API such as `rules.2.metric.expression must …`. */
export function faultIn(message: string, index: number | undefined): RuleFaults | undefined {
  const prefix = index === undefined ? 'rule.' : `rules.${index}.`
  const [path = '', ...words] = message.split(' ')
  if (!path.startsWith(prefix)) return undefined
  const [outer = '', inner] = path.slice(prefix.length).split('.')
  const fields: readonly string[] = Object.keys(emptyForm().texts)
  const known = [`${outer}.${inner}`, outer, ...fields.filter(field => field.startsWith(`${outer}.`))]
  const others = ['kinds', 'receivers', ...LIST_CONDITIONS]
  const field = known.find(name => fields.includes(name) || others.includes(name))
  return field === undefined ? undefined : { [field]: `It ${words.join(' ')}.` }
}
