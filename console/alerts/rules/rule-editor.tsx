import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { AlertReceiver, AlertRule } from '../../api/generated/client.ts'
import { ChangeFault, useAction } from '../../ui/changes.tsx'
import { changeAlerts, type ReadAlerts } from '../replace-alerts.ts'
import { ConditionFields } from './condition-fields.tsx'
import { type Editing, TextInput } from './inputs.tsx'
import { KindFields } from './kind-fields.tsx'
import { emptyForm, faultIn, formOf, type RuleFaults, type RuleForm, ruleOf } from './rule-form.ts'
import { ReceiverFields, TimeFields } from './sending-fields.tsx'
import { useTrial } from './trial.tsx'

interface EditorProps {
  readonly read: ReadAlerts
  /** The name of the rule that is changed. Undefined makes a new one. */
  readonly name: string | undefined
  /** The rule with whose values the form begins. */
  readonly from: AlertRule | undefined
  /** Called with the name of the rule that was saved, or undefined if none was. */
  readonly onDone: (saved: string | undefined) => void
}

/** A form for a rule, which can be tried before it is saved. */
export function RuleEditor({ read, name, from, onDone }: EditorProps) {
  const { rules, receivers } = read.alerts
  const [opened] = useState(from)
  const element = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => element.current?.querySelector('input')?.focus(), [])
  const others = rules.map(rule => rule.name).filter(other => other !== name)
  const { editing, check } = useRuleForm(from, others)
  const saving = useSaving(read, name, editing.form, onDone)
  const trial = useTrial(editing.form)
  const isBusy = saving.isBusy || trial.isBusy
  const checked = (then: (rule: AlertRule) => Promise<void>) => (event: Event) => {
    event.preventDefault()
    const rule = check()
    const invalid = () => element.current?.querySelector<HTMLElement>('[aria-invalid], .invalid input')
    if (rule === undefined) requestAnimationFrame(() => invalid()?.focus())
    else if (!isBusy) void then(rule)
  }
  const shown = { ...editing, faults: { ...saving.faults, ...trial.faults, ...editing.faults } }
  return (
    <form ref={element} class="rule" onSubmit={checked(saving.run)} noValidate autocomplete="off">
      <RuleFields editing={shown} receivers={receivers} />
      <Meanwhile opened={opened} current={rules.find(rule => rule.name === name)} isNew={name === undefined} />
      {saving.shown}
      <p class="panel-links">
        <button type="submit" class="main" disabled={saving.isBusy}>
          Save rule
        </button>
        <button type="button" aria-disabled={trial.isBusy} onClick={checked(trial.run)}>
          Try on the last seven days
        </button>
        <button type="button" onClick={() => onDone(undefined)}>
          Cancel
        </button>
      </p>
      {trial.shown}
    </form>
  )
}

function RuleFields(props: { readonly editing: Editing; readonly receivers: readonly AlertReceiver[] }) {
  const { editing, receivers } = props
  return (
    <>
      <TextInput editing={editing} field="name" label="Name" hint="Messages show it." />
      <KindFields editing={editing} />
      <ConditionFields editing={editing} />
      <ReceiverFields editing={editing} receivers={receivers} />
      <TimeFields editing={editing} />
    </>
  )
}

/** Keeps what is typed. Once a form was refused, its faults follow the typing. */
function useRuleForm(from: AlertRule | undefined, others: readonly string[]) {
  const [form, setForm] = useState<RuleForm>(() => (from ? formOf(from) : emptyForm()))
  const [isChecked, setChecked] = useState(false)
  const result = ruleOf(form, others)
  const faults: RuleFaults = isChecked && 'faults' in result ? result.faults : {}
  const editing: Editing = { form, faults, change: changes => setForm({ ...form, ...changes }) }
  const check = () => {
    setChecked(true)
    return 'rule' in result ? result.rule : undefined
  }
  return { editing, check }
}

/** Saves a rule. Faults that the API finds are those of the form that it got. */
function useSaving(read: ReadAlerts, name: string | undefined, form: RuleForm, onDone: EditorProps['onDone']) {
  const { rules } = read.alerts
  const action = useAction()
  const [sent, setSent] = useState<{ readonly form: RuleForm; readonly index: number }>()
  const run = async (rule: AlertRule) => {
    const known = rules.findIndex(other => other.name === name)
    const index = known < 0 ? rules.length : known
    setSent({ form, index })
    const replaced = (kept: readonly AlertRule[]) => [...kept.slice(0, index), rule, ...kept.slice(index + 1)]
    if (await action.run(signal => changeAlerts(read, { rules: replaced }, signal))) onDone(rule.name)
  }
  const faults = sent?.form === form ? faultIn(action.fault?.message ?? '', sent.index) : undefined
  const shown = faults === undefined ? <ChangeFault fault={action.fault} /> : null
  return { run, isBusy: action.isBusy, faults, shown }
}

/** States that somebody else has changed the rule since its form was opened. */
function Meanwhile(props: {
  readonly opened: AlertRule | undefined
  readonly current: AlertRule | undefined
  readonly isNew: boolean
}) {
  const { opened, current, isNew } = props
  if (isNew || JSON.stringify(opened) === JSON.stringify(current)) return null
  return (
    <p role="status" class="fault">
      {current === undefined
        ? 'This rule was deleted or renamed meanwhile. Saving adds it.'
        : 'This rule was changed meanwhile. Saving replaces that change.'}
    </p>
  )
}
