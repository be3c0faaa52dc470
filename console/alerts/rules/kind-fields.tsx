import { KIND_GROUPS, KINDS, type Kind, type Measure } from '../kinds.ts'
import { Box, type Editing, FieldFault, TextInput, toggled } from './inputs.tsx'
import { SPIKING } from './rule-words.ts'

/** The kinds of a rule, and what those that are chosen measure. */
export function KindFields({ editing }: { readonly editing: Editing }) {
  const { form, faults, change } = editing
  return (
    <fieldset class={`boxes ${faults.kinds ? 'invalid' : ''}`}>
      <legend>It calls when</legend>
      <FieldFault text={faults.kinds} />
      {KIND_GROUPS.map(({ name, kinds }) => (
        <fieldset key={name} class="plain">
          <legend class="quiet">{name}</legend>
          {kinds.map(kind => (
            <KindField
              key={kind}
              kind={kind}
              editing={editing}
              onChange={isIn => change({ kinds: toggled(form.kinds, kind, isIn) })}
            />
          ))}
        </fieldset>
      ))}
    </fieldset>
  )
}

function KindField(props: {
  readonly kind: Kind
  readonly editing: Editing
  readonly onChange: (isIn: boolean) => void
}) {
  const { kind, editing, onChange } = props
  const { name, when, measure } = KINDS[kind]
  const isChosen = editing.form.kinds.includes(kind)
  return (
    <>
      <Box isChecked={isChosen} onChange={onChange}>
        {name} <span class="quiet">{when}</span>
      </Box>
      {isChosen && measure && (
        <fieldset class="measure" aria-label={name}>
          <MeasureFields measure={measure} editing={editing} />
        </fieldset>
      )}
    </>
  )
}

/** Fields of measures that are numbers, with their labels. */
const LABELS = {
  spiking: [
    ['spiking.times', 'Times as often'],
    ['spiking.atLeast', 'Occurrences, at least'],
  ],
  spreading: [
    ['spreading.people', 'People'],
    ['spreading.minutes', 'Within minutes'],
  ],
  errors: [
    ['errors.percent', 'Failed calls, %'],
    ['errors.minutes', 'Within minutes'],
    ['errors.atLeast', 'Calls, at least'],
  ],
  latency: [
    ['latency.p95Ms', 'p95 in ms'],
    ['latency.minutes', 'Within minutes'],
    ['latency.atLeast', 'Calls, at least'],
  ],
  silent: [['silent.minutes', 'For minutes']],
} as const

const PLACEHOLDERS: Readonly<Record<string, string>> = {
  'spiking.times': String(SPIKING.times),
  'spiking.atLeast': String(SPIKING.atLeast),
}

function MeasureFields({ measure, editing }: { readonly measure: Measure; readonly editing: Editing }) {
  if (measure === 'metric') return <MetricFields editing={editing} />
  return (
    <>
      {LABELS[measure].map(([field, label]) => (
        <TextInput
          key={field}
          editing={editing}
          field={field}
          label={label}
          kind="number"
          placeholder={PLACEHOLDERS[field] ?? ''}
        />
      ))}
    </>
  )
}

function MetricFields({ editing }: { readonly editing: Editing }) {
  const { form, change } = editing
  return (
    <>
      <TextInput
        editing={editing}
        field="metric.expression"
        label="Expression"
        kind="lines"
        placeholder="sum by (service_name) (rate(orders_total[5m]))"
        hint="PromQL. Each series of its result is compared by itself."
      />
      <label class="field short">
        <span>It is</span>
        <select
          value={form.isAbove ? 'above' : 'below'}
          onChange={event => change({ isAbove: event.currentTarget.value === 'above' })}
        >
          <option value="above">above</option>
          <option value="below">below</option>
        </select>
      </label>
      <TextInput editing={editing} field="metric.value" label="Value" kind="number" />
      <TextInput editing={editing} field="metric.minutes" label="For minutes" kind="number" />
    </>
  )
}
