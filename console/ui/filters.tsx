import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { listSurfaces } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { changeQuery, place } from '../state/router.ts'
import { choiceOf, type FilterRules, faultIn } from './filter-rules.ts'
import { Suggestions } from './suggestions.tsx'

const TYPING_MS = 300

/** The filters of a list. Each of them is a parameter of the address. */
export function Filters({ children }: { readonly children: ComponentChildren }) {
  return (
    <search>
      <form class="filters" onSubmit={event => event.preventDefault()}>
        {children}
      </form>
    </search>
  )
}

/** Most characters that any filter accepts. */
const CHARACTERS_MAX = 1_024

/**
 * A text of the address, which follows the typing after a moment. A text that breaks the rule of the filter stays in the field,
 * which states why, and changes nothing else.
 */
export function TextFilter(props: {
  readonly name: string
  readonly label: string
  readonly type?: 'search' | 'text'
  readonly placeholder?: string
  readonly rules?: FilterRules
  readonly maxLength?: number
  /** Texts that are suggested as the user types. */
  readonly suggests?: 'service' | 'name'
}) {
  const { name, rules = {}, maxLength = CHARACTERS_MAX, suggests } = props
  const [isFocused, setFocused] = useState(false)
  const given = place.value.query.get(name) ?? ''
  const rule = rules[name]
  const [text, setText] = useState(given)
  const [fault, setFault] = useState(faultIn(rule, given))
  useEffect(() => {
    setText(given)
    setFault(faultIn(rule, given))
  }, [given])
  useEffect(() => {
    if (text === given) return
    const timer = setTimeout(() => {
      const found = faultIn(rule, text)
      setFault(found)
      if (found === undefined) changeQuery({ [name]: rule?.normalOf?.(text) ?? text }, { replace: true })
    }, TYPING_MS)
    return () => clearTimeout(timer)
  }, [text])
  const id = useId()
  const shared = {
    id,
    list: suggests && `${id}-list`,
    onFocus: () => setFocused(true),
    onBlur: () => setFocused(false),
    value: text,
    placeholder: props.placeholder ?? '',
    autocomplete: 'off',
    spellcheck: false,
    maxLength,
    ...(fault && { 'aria-invalid': true, 'aria-describedby': `${id}-fault` }),
    onInput: (event: Event) => setText((event.currentTarget as HTMLInputElement).value),
  } as const
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.type === 'search' ? <input type="search" {...shared} /> : <input type="text" {...shared} />}
      {suggests && <Suggestions id={`${id}-list`} field={isFocused ? { of: suggests, contains: text } : undefined} />}
      {fault && (
        <small id={`${id}-fault`} class="fault" role="status">
          {fault}
        </small>
      )}
    </div>
  )
}

/** A choice of the address. The first option is that of an absent parameter. */
export function ChoiceFilter(props: {
  readonly name: string
  readonly label: string
  readonly options: readonly (readonly [value: string, text: string])[]
  /** Whether an address may name others, which are then among the options. If not, they are as if absent. */
  readonly isOpen?: boolean
}) {
  const given = place.value.query.get(props.name) ?? ''
  const isOther = faultIn(choiceOf(props.options), given) !== undefined
  const others = isOther && props.isOpen ? [[given, given] as const] : []
  return (
    <label class="field">
      <span>{props.label}</span>
      <select
        value={isOther && !props.isOpen ? '' : given}
        onChange={event => changeQuery({ [props.name]: event.currentTarget.value })}
      >
        {[...props.options, ...others].map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  )
}

const SURFACES_MAX = 100

/** A choice among the surfaces of the workspace. The surface of the address is among them also if it cannot be listed any more. */
export function SurfaceFilter() {
  const loaded = useLoad('surfaces', signal => listSurfaces({ limit: SURFACES_MAX }, { signal }))
  const surfaces = loaded.value?.surfaces ?? []
  const options = [['', 'Any'] as const, ...surfaces.map(({ id, name }) => [id, name] as const)]
  return <ChoiceFilter name="surface" label="Surface" options={options} isOpen />
}

/** Choices of whether what is listed belongs to a finding. */
export const FINDING_OPTIONS = [
  ['', 'With or without'],
  ['true', 'With a finding'],
] as const

/** Links to the first and the next page of a list. */
export function Pages(props: { readonly nextCursor: string | null }) {
  const { query } = place.value
  const isFirst = !query.has('cursor')
  if (isFirst && props.nextCursor === null) return null
  return (
    <nav class="pages" aria-label="Pages of the list">
      <button type="button" disabled={isFirst} onClick={() => changeQuery({})}>
        First page
      </button>
      <button
        type="button"
        disabled={props.nextCursor === null}
        onClick={() => props.nextCursor !== null && changeQuery({ cursor: props.nextCursor })}
      >
        Next page
      </button>
    </nav>
  )
}
