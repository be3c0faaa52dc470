import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { alertRuleSchema } from '../../../schemas/http/alerts/rules.ts'
import {
  ALERT_MEASURES,
  CALLED_KINDS,
  conditionsOf as conditionsOfApi,
  DEFAULT_ALERT_RULES,
} from '../../../schemas/records/alerts.ts'
import type { AlertRule } from '../../api/generated/client.ts'
import { conditionsOf, KIND_GROUPS, KINDS, type Kind, LIST_CONDITIONS } from '../kinds.ts'
import { NUMBERS, type NumberField } from './number-fields.ts'
import { emptyForm, faultIn, formOf, measuresOf, type RuleForm, ruleOf } from './rule-form.ts'

const text = fc.string({ minLength: 1, maxLength: 200, unit: 'binary' }).filter(value => value.length <= 400)
const texts = fc.array(text, { minLength: 1, maxLength: 4 })
const count = fc.integer({ min: 1, max: 1e9 })
const minutes = fc.integer({ min: 1, max: 1_440 })
const double = (min: number, max: number) =>
  fc.double({ min, max, noNaN: true }).map(value => (Object.is(value, -0) ? 0 : value))
const clock = fc
  .tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
  .map(parts => parts.map(part => String(part).padStart(2, '0')).join(':'))
const metric = fc
  .tuple(text, double(-1e300, 1e300), fc.boolean(), minutes)
  .map(([expression, value, isAbove, length]) => ({
    ...{ expression, minutes: length },
    ...(isAbove ? { above: value } : { below: value }),
  }))
const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined })

const anything = fc.record({
  name: text,
  kinds: fc.oneof(
    fc.uniqueArray(fc.constantFrom(...CALLED_KINDS), { minLength: 1 }),
    fc.constantFrom(...CALLED_KINDS).map(kind => [kind]),
  ),
  ...{ receivers: maybe(texts), surfaces: maybe(texts), services: maybe(texts), environments: maybe(texts) },
  ...{ releases: maybe(texts), types: maybe(texts), minPeople: maybe(count), everyMinutes: maybe(minutes) },
  spiking: maybe(fc.record({ times: double(1, 1_000), atLeast: count })),
  spreading: fc.record({ people: count, minutes }),
  metric,
  errors: fc.record({ percent: double(0.001, 100), minutes, atLeast: count }),
  latency: fc.record({ p95Ms: double(0.001, 1e9), minutes, atLeast: count }),
  silent: fc.record({ minutes }),
  quietHours: maybe(
    fc.record({ from: clock, to: clock, zone: fc.constantFrom('UTC', 'Europe/Berlin', 'Asia/Kolkata') }),
  ),
  resolved: maybe(fc.boolean()),
})

/** Rules that the API accepts: what does not belong to their kinds is left out. */
const rules = anything.map(given => {
  const kinds = given.kinds as Kind[]
  const isLeftOut = (field: string) => {
    const of = ALERT_MEASURES[field as keyof typeof ALERT_MEASURES]
    if (of !== undefined) return !kinds.includes(of)
    const isCondition = [...LIST_CONDITIONS, 'minPeople'].includes(field)
    return isCondition && !kinds.every(kind => conditionsOfApi(kind).some(condition => condition === field))
  }
  const kept = Object.entries(given).filter(([field, value]) => value !== undefined && !isLeftOut(field))
  return Object.fromEntries(kept) as unknown as AlertRule
})

describe('the form of a rule', () => {
  it('returns every rule of the API as it was', () => {
    fc.assert(
      fc.property(rules, rule => {
        expect(alertRuleSchema.safeParse(rule).error).toBeUndefined()
        expect(ruleOf(formOf(rule))).toEqual({ rule })
      }),
      { numRuns: 500 },
    )
    for (const rule of DEFAULT_ALERT_RULES as readonly AlertRule[]) expect(ruleOf(formOf(rule))).toEqual({ rule })
  })

  const typed = fc.oneof(
    fc.constantFrom('', ' ', '0', '1', '-1', '0.5', '100', '1440', '1441', '1e9', '1e10', 'ten', '0x10', 'Infinity'),
    fc.string({ maxLength: 3 }),
  )
  const forms: fc.Arbitrary<RuleForm> = fc
    .tuple(rules, fc.dictionary(fc.constantFrom(...Object.keys(emptyForm().texts)), typed), fc.boolean())
    .map(([rule, changed, isQuiet]) => {
      const form = formOf(rule)
      return { ...form, isQuiet, texts: { ...form.texts, ...changed } }
    })

  it('returns faults, or a rule that the API accepts', () => {
    fc.assert(
      fc.property(forms, form => {
        const result = ruleOf(form)
        if ('faults' in result) expect(Object.keys(result.faults)).not.toEqual([])
        else expect(alertRuleSchema.safeParse(result.rule).error).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  it('accepts the least and the greatest number that the API accepts, and none beyond', () => {
    const accepts = (field: NumberField, value: number) => {
      const [outer = '', inner = ''] = field.split('.')
      const kinds = (Object.keys(KINDS) as Kind[]).filter(kind => KINDS[kind].measure === outer)
      const form = { ...emptyForm(), kinds: kinds.length > 0 ? kinds : (['finding.created'] as const) }
      const filled = Object.fromEntries(Object.keys(NUMBERS).map(name => [name, '1']))
      const texts = { ...form.texts, ...filled, name: 'a', 'metric.expression': 'up', [field]: String(value) }
      const byForm = 'rule' in ruleOf({ ...form, texts })
      const known = ruleOf({ ...form, texts: { ...texts, [field]: '1' } })
      if (!('rule' in known)) throw new Error(`no rule with ${field}`)
      const of = known.rule as unknown as Record<string, object>
      const name = inner === 'value' ? 'above' : inner
      const rule = { ...of, [outer]: inner === '' ? value : { ...of[outer], [name]: value } }
      return [byForm, alertRuleSchema.safeParse(rule).success]
    }
    for (const [field, { min, max }] of Object.entries(NUMBERS)) {
      const step = (value: number) => Math.max(Math.abs(value) * 1e-3, 1e-3)
      const around = [min, max].flatMap(value => [value - step(value), value, value + step(value)])
      for (const value of [...around, 1, 1.5]) {
        const [byForm, byApi] = accepts(field as NumberField, value)
        expect([field, value, byForm]).toEqual([field, value, byApi])
      }
    }
  })

  it('knows the kinds of the API, their measures and their conditions', () => {
    expect(KIND_GROUPS.flatMap(({ kinds }) => kinds).sort()).toEqual([...CALLED_KINDS].sort())
    for (const kind of CALLED_KINDS) {
      expect(conditionsOf([kind])).toEqual(conditionsOfApi(kind))
      expect(measuresOf([kind])).toEqual(
        Object.entries(ALERT_MEASURES).flatMap(([measure, of]) => (of === kind ? [measure] : [])),
      )
    }
    expect(conditionsOf(['finding.created', 'service.errors'])).toEqual(['services', 'environments'])
    expect(conditionsOf(['finding.created', 'metric.threshold'])).toEqual([])
  })

  it('states a fault at its field', () => {
    expect(ruleOf(emptyForm())).toEqual({ faults: { name: 'Write something here.', kinds: 'Choose at least one.' } })
    const form = formOf({ name: 'a', kinds: ['service.errors'] })
    expect(ruleOf(form, ['a'])).toEqual({
      faults: { name: 'Another rule has this name.', 'errors.percent': 'Write a number.' },
    })
    expect(ruleOf({ ...form, kinds: ['metric.threshold'] })).toEqual({
      faults: { 'metric.expression': 'Write something here.', 'metric.value': 'Write a number.' },
    })
  })

  it('finds the field of a fault of the API', () => {
    expect(faultIn('rules.2.metric.expression must be PromQL', 2)).toEqual({
      'metric.expression': 'It must be PromQL.',
    })
    expect(faultIn('rule.services.0 must have 1 to 200 characters', undefined)).toEqual({
      services: 'It must have 1 to 200 characters.',
    })
    expect(faultIn('rules.2.metric must have either above or below', 2)).toEqual({
      'metric.value': 'It must have either above or below.',
    })
    expect(faultIn('rules.1.name must have 1 to 200 characters', 2)).toBeUndefined()
    expect(faultIn('revision must be that of the rules', 0)).toBeUndefined()
  })
})
