import { useEffect, useState } from 'preact/hooks'
import { listSuggestions } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { place, present } from '../state/router.ts'
import { timesOf } from '../state/time-range.ts'

const TYPING_MS = 300
const SUGGESTED = 20

/** A field for which texts are suggested: services, names of spans, keys of attributes, or the values of a key. */
interface Suggested {
  readonly of: 'service' | 'name' | 'key' | 'value'
  readonly key?: string
  readonly contains: string
}

/** Offers texts for the field that is typed in, whose attribute `list` names it. A failure offers nothing. */
export function Suggestions(props: {
  readonly id: string
  /** Undefined while the field is not typed in. */
  readonly field: Suggested | undefined
  /** Text before each. */
  readonly prefix?: string
}) {
  const { id, field, prefix = '' } = props
  return (
    <datalist id={id}>
      {useSuggestions(field).map(text => (
        <option key={text} value={prefix + text} />
      ))}
    </datalist>
  )
}

function useSuggestions(field: Suggested | undefined): readonly string[] {
  const text = field && JSON.stringify([field.of, field.key, field.contains])
  const [settled, settle] = useState<string>()
  useEffect(() => {
    const timer = setTimeout(() => settle(text), TYPING_MS)
    return () => clearTimeout(timer)
  }, [text])
  const { query } = place.value
  const service = field?.of === 'service' ? undefined : (query.get('service') ?? undefined)
  const loaded = useLoad(settled && `suggestions ${settled} ${service}`, signal => {
    const [of, key, contains] = JSON.parse(settled ?? '[]') as [Suggested['of'], string | null, string]
    const parameters = { $of: of, limit: SUGGESTED, ...timesOf(query, { isBounded: true }) }
    return listSuggestions({ ...parameters, ...present({ key: key ?? undefined, contains, service }) }, { signal })
  })
  return field === undefined ? [] : (loaded.value?.suggestions ?? [])
}
