import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import type { ListCondition } from '../kinds.ts'
import { type RuleFaults, type RuleField, type RuleForm, withTyped } from './rule-form.ts'

/** A rule that is typed. */
export interface Editing {
  readonly form: RuleForm
  readonly faults: RuleFaults
  readonly change: (changes: Partial<RuleForm>) => void
}

/** States why a field is not accepted. */
export function FieldFault({ id, text }: { readonly id?: string; readonly text: string | undefined }) {
  return text === undefined ? null : (
    <small id={id} class="fault">
      {text}
    </small>
  )
}

const CLASSES = { number: 'short', time: 'short', lines: 'lines' } as const

/** A field of one text. */
export function TextInput(props: {
  readonly editing: Editing
  readonly field: keyof RuleForm['texts']
  readonly label: string
  readonly hint?: ComponentChildren
  readonly placeholder?: string
  readonly kind?: 'number' | 'time' | 'lines'
}) {
  const { field, label, hint, kind } = props
  const { form, faults, change } = props.editing
  const id = useId()
  const fault = faults[field]
  const shared = {
    id,
    value: form.texts[field],
    placeholder: props.placeholder ?? '',
    autocomplete: 'off',
    spellcheck: false,
    'aria-describedby': `${id}-hint ${id}-fault`,
    ...(fault !== undefined && { 'aria-invalid': true }),
    onInput: (event: Event) =>
      change({ texts: { ...form.texts, [field]: (event.currentTarget as HTMLInputElement).value } }),
  } as const
  return (
    <div class={`field ${kind === undefined ? '' : CLASSES[kind]}`}>
      <label for={id}>{label}</label>
      {kind === 'lines' && <textarea rows={2} class="mono" {...shared} />}
      {kind === 'time' && <input type="time" {...shared} />}
      {kind === 'number' && <input type="text" inputMode="decimal" {...shared} />}
      {kind === undefined && <input type="text" {...shared} />}
      <FieldFault id={`${id}-fault`} text={fault} />
      {hint && (
        <small id={`${id}-hint`} class="quiet">
          {hint}
        </small>
      )}
    </div>
  )
}

/** A box of several. */
export function Box(props: {
  readonly isChecked: boolean
  readonly onChange: (isChecked: boolean) => void
  readonly type?: 'checkbox' | 'radio'
  readonly name?: string
  readonly children: ComponentChildren
}) {
  return (
    <label class="check">
      <input
        type={props.type ?? 'checkbox'}
        name={props.name}
        checked={props.isChecked}
        onChange={event => props.onChange(event.currentTarget.checked)}
      />
      <span>{props.children}</span>
    </label>
  )
}

/** Returns a list with or without a value. */
export function toggled<T>(values: readonly T[], value: T, isIn: boolean): readonly T[] {
  return isIn ? [...values, value] : values.filter(other => other !== value)
}

/** A list of values that are typed, with suggestions. Enter adds one. */
export function ValuesInput(props: {
  readonly editing: Editing
  readonly field: ListCondition & RuleField
  readonly label: string
  readonly suggestions: readonly string[]
  readonly hint?: string
}) {
  const { field, label, suggestions, hint, editing } = props
  const { form, faults, change } = editing
  const values = form.lists[field]
  const fault = faults[field]
  const id = useId()
  const setTyped = (text: string) => change({ typed: { ...form.typed, [field]: text } })
  return (
    <div class="field values">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        list={`${id}-suggestions`}
        value={form.typed[field] ?? ''}
        placeholder={values.length === 0 ? 'Any' : 'Another one'}
        autocomplete="off"
        spellcheck={false}
        aria-describedby={`${id}-fault ${id}-hint`}
        {...(fault !== undefined && { 'aria-invalid': true })}
        onInput={event => setTyped(event.currentTarget.value)}
        onKeyDown={event => {
          if (event.key !== 'Enter' || (form.typed[field] ?? '').trim() === '') return
          event.preventDefault()
          change(withTyped(form, field))
        }}
      />
      <datalist id={`${id}-suggestions`}>
        {suggestions
          .filter(value => !values.includes(value))
          .map(value => (
            <option key={value} value={value} />
          ))}
      </datalist>
      <FieldFault id={`${id}-fault`} text={fault} />
      <small id={`${id}-hint`} class="quiet">
        {hint ? `${hint} Enter adds one.` : 'Enter adds one.'}
      </small>
      <Chips
        label={`${label}: chosen`}
        values={values}
        onRemove={value => {
          change({ lists: { ...form.lists, [field]: toggled(values, value, false) } })
          document.getElementById(id)?.focus()
        }}
      />
    </div>
  )
}

function Chips(props: {
  readonly label: string
  readonly values: readonly string[]
  readonly onRemove: (value: string) => void
}) {
  const { label, values, onRemove } = props
  if (values.length === 0) return null
  return (
    <ul class="chips" aria-label={label}>
      {values.map(value => (
        <li key={value}>
          {value}
          <button type="button" class="plain" aria-label={`Remove ${value}`} onClick={() => onRemove(value)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  )
}
