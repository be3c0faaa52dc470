import { type ComponentChildren, Fragment } from 'preact'
import type { Attribute, SpanDetails } from '../api/generated/client.ts'
import { addressOf, place } from '../state/router.ts'
import { whereWith } from '../state/where.ts'
import { Copy } from './text.tsx'

type ShownAttribute = Pick<Attribute, 'key' | 'value'>

/** A table of names with their values. */
export function NamedValues<Row>(props: {
  readonly caption?: string
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row, index: number) => string | number
  readonly name: (row: Row) => ComponentChildren
  readonly value: (row: Row) => ComponentChildren
}) {
  const { caption, rows, keyOf, name, value } = props
  return (
    <table class="attributes">
      {caption && <caption>{caption}</caption>}
      <tbody>
        {rows.map((row, i) => (
          <tr key={keyOf(row, i)}>
            <th scope="row">{name(row)}</th>
            <td>{value(row)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** A table of attributes. With `filters`, each value leads to the list of those that have it, and of those that do not. */
export function AttributeTable(props: {
  readonly attributes: readonly ShownAttribute[]
  readonly filters?: 'traces' | 'logs' | undefined
}) {
  const { attributes, filters } = props
  return (
    <NamedValues
      rows={attributes}
      keyOf={(_attribute, i) => i}
      name={({ key }) =>
        partsOf(key).map((part, at) => (
          <Fragment key={at}>
            {part}
            <wbr />
          </Fragment>
        ))
      }
      value={attribute => (
        <>
          {attribute.value}
          <ValueActions attribute={attribute} list={filters} />
        </>
      )}
    />
  )
}

/** Links to lists by a value, and a button that copies it. */
function ValueActions(props: { readonly attribute: ShownAttribute; readonly list: 'traces' | 'logs' | undefined }) {
  const { attribute, list } = props
  const { key, value } = attribute
  const { path, query } = place.value
  const listed = path === list ? query : new URLSearchParams()
  const kept = Object.fromEntries([...listed].filter(([name]) => name !== 'cursor'))
  const address = (operator: '=' | '!=') =>
    addressOf(list ?? '', { ...kept, where: whereWith(listed, [key, operator, value]) })
  return (
    <span class="value-actions">
      {list && (
        <>
          <a href={address('=')} aria-label={`Only ${list} with this ${key}`}>
            only
          </a>
          <a href={address('!=')} aria-label={`Only ${list} without this ${key}`}>
            not
          </a>
        </>
      )}
      <Copy text={value} />
    </span>
  )
}

/** Returns the parts of a key, between which a line may end: elsewhere it would end within a word. */
const partsOf = (key: string) => key.match(/[^._]*[._]?/g)?.filter(part => part !== '') ?? []

/** Returns the attributes of a resource or scope, whose values that are no texts are JSON. */
export function attributesOf(attributes: SpanDetails['resource']['attributes']): ShownAttribute[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? value : JSON.stringify(value),
  }))
}
