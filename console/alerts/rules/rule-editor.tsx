import { useEffect, useRef, useState } from 'preact/hooks'
import type { AlertRule } from '../../api/generated/client.ts'
import { ChangeFault, useAction } from '../../ui/changes.tsx'
import { changeAlerts, type ReadAlerts } from '../replace-alerts.ts'
import { ConditionFields } from './condition-fields.tsx'
import { type Editing, TextInput } from './inputs.tsx'
import { KindFields } from './kind-fields.tsx'
import { emptyForm, faultIn, formOf, type RuleFaults, type RuleForm, ruleOf } from './rule-form.ts'
import { ReceiverFields, TimeFields } from './sending-fields.tsx'

interface EditorProps {
  readonly read: ReadAlerts
  /** The name of the rule that is changed. Undefined makes a new one. */
  readonly name: string | undefined
  /** The rule with whose values the form begins. */
  readonly from: AlertRule | undefined
  /** Called with the name of the rule that was saved, or undefined if none was. */
  readonly onDone: (saved: string | undefined) => void
}

/** A form for a rule. */
export function RuleEditor({ read, name, from, onDone }: EditorProps) {
  const { alerts } = read
  const { rules, receivers } = alerts
  const [opened] = useState(from)
  const element = useRef<HTMLFormElement>(null)
  useEffect(() => element.current?.querySelector('input')?.focus(), [])
  const others = rules.map(rule => rule.name).filter(other => other !== name)
  const { editing, check } = useRuleForm(from, others)
  const action = useAction()
  const checked = () => {
    const rule = check()
    const invalid = () => element.current?.querySelector<HTMLElement>('[aria-invalid], .invalid input')
    if (rule === undefined) requestAnimationFrame(() => invalid()?.focus())
    return rule
  }
  const save = async (event: Event) => {
    event.preventDefault()
    const rule = checked()
    if (rule === undefined) return
    const index = positionOf(rules, name)
    const replaced = (kept: readonly AlertRule[]) => [...kept.slice(0, index), rule, ...kept.slice(index + 1)]
    if (await action.run(signal => changeAlerts(read, { rules: replaced }, signal))) onDone(rule.name)
  }
  const refused = faultIn(action.fault?.message ?? '', positionOf(rules, name))
  const shown = { ...editing, faults: { ...refused, ...editing.faults } }
  return (
    <form ref={element} class="rule" onSubmit={save} noValidate autocomplete="off">
      <TextInput editing={shown} field="name" label="Name" hint="Messages show it." />
      <KindFields editing={shown} />
      <ConditionFields editing={shown} />
      <ReceiverFields editing={shown} receivers={receivers} />
      <TimeFields editing={shown} />
      <Meanwhile opened={opened} current={rules.find(rule => rule.name === name)} isNew={name === undefined} />
      {refused === undefined && <ChangeFault fault={action.fault} />}
      <p class="panel-links">
        <button type="submit" class="main" disabled={action.isBusy}>
          Save rule
        </button>
        <button type="button" onClick={() => onDone(undefined)}>
          Cancel
        </button>
      </p>
    </form>
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

/** Returns the place that a rule has in the request that saves it. */
function positionOf(rules: readonly AlertRule[], name: string | undefined): number {
  const index = rules.findIndex(rule => rule.name === name)
  return index < 0 ? rules.length : index
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
