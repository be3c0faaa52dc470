import { useId, useState } from 'preact/hooks'
import { changeQuery, place } from '../state/router.ts'
import {
  type Condition,
  describeCondition,
  parseCondition,
  typedValue,
  whereOf,
  whereText,
  whereWith,
} from '../state/where.ts'
import { Suggestions } from './suggestions.tsx'

/** Conditions on attributes, all of which are met. They are typed, or added by a click on a value. */
export function Conditions() {
  const id = useId()
  const [text, setText] = useState('')
  const [fault, setFault] = useState<string>()
  const [isFocused, setFocused] = useState(false)
  const add = () => {
    if (text.trim() === '') return
    const condition = parseCondition(text)
    if ('fault' in condition) return setFault(condition.fault)
    setFault(undefined)
    setText('')
    changeQuery({ where: whereWith(place.value.query, condition) })
  }
  return (
    <div class="field wide">
      <label for={id}>Attributes</label>
      <div class="joined">
        <input
          id={id}
          type="text"
          list={`${id}-list`}
          value={text}
          placeholder="http.route=/cart"
          title="key=value, key≠value, key>5, key~part, key exists, !key"
          autocomplete="off"
          spellcheck={false}
          maxLength={1_024}
          {...(fault && { 'aria-invalid': true, 'aria-describedby': `${id}-fault` })}
          onFocus={() => setFocused(true)}
          onBlur={() => setFocused(false)}
          onInput={event => {
            setText(event.currentTarget.value)
            setFault(undefined)
          }}
          onKeyDown={event => {
            if (event.key !== 'Enter') return
            event.preventDefault()
            add()
          }}
        />
        <button type="button" onClick={add}>
          Add
        </button>
      </div>
      <TypedSuggestions id={`${id}-list`} text={isFocused ? text : undefined} />
      {fault && (
        <small id={`${id}-fault`} class="fault" role="status">
          {fault}
        </small>
      )}
      <Chips />
    </div>
  )
}

/** Keys until the operator is typed, and then values of the key. */
function TypedSuggestions({ id, text }: { readonly id: string; readonly text: string | undefined }) {
  if (text === undefined) return <Suggestions id={id} field={undefined} />
  const typed = typedValue(text)
  if (typed === undefined) return <Suggestions id={id} field={{ of: 'key', contains: text.trim().replace(/^!/, '') }} />
  const { key, operator, value } = typed
  return <Suggestions id={id} field={{ of: 'value', key, contains: value }} prefix={key + operator} />
}

function Chips() {
  const conditions = whereOf(place.value.query)
  if (conditions.length === 0) return null
  const remove = (removed: Condition) => changeQuery({ where: whereText(conditions.filter(one => one !== removed)) })
  return (
    <ul class="chips" aria-label="Conditions on attributes">
      {conditions.map(condition => (
        <li key={JSON.stringify(condition)}>
          <span>{describeCondition(condition)}</span>
          <button type="button" aria-label={`Remove ${describeCondition(condition)}`} onClick={() => remove(condition)}>
            ×
          </button>
        </li>
      ))}
    </ul>
  )
}
