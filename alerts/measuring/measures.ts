import type { AlertRule, CalledKind } from '../../schemas/records/alerts.ts'
import { measureSpiking, measureSpreading } from './findings.ts'
import { measureMetric } from './measure-metric.ts'
import { measureDeadLetters, measureLateness, measureQuota } from './pipeline.ts'
import type { Measure } from './reading.ts'
import { measureErrors, measureLatency } from './services.ts'
import { measureSilence } from './surfaces.ts'

/** The measure of each kind of events that is measured. The other kinds are found where something happens. */
export const MEASURES: Readonly<Partial<Record<CalledKind, Measure>>> = {
  'finding.spiking': measureSpiking,
  'finding.spreading': measureSpreading,
  'metric.threshold': measureMetric,
  'service.errors': measureErrors,
  'service.latency': measureLatency,
  'surface.silent': measureSilence,
  'pipeline.dead_letters': measureDeadLetters,
  'pipeline.quota': measureQuota,
  'pipeline.late': measureLateness,
}

/** A rule, and a kind of its events that is measured. */
export interface MeasuredKind {
  readonly rule: AlertRule
  readonly kind: CalledKind
  readonly measure: Measure
}

/** Returns what rules measure. */
export function measuredKinds(rules: readonly AlertRule[]): MeasuredKind[] {
  return rules.flatMap(rule =>
    rule.kinds.flatMap(kind => {
      const measure = MEASURES[kind]
      return measure === undefined ? [] : [{ rule, kind, measure }]
    }),
  )
}
