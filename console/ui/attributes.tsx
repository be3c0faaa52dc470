import { type ComponentChildren, Fragment } from 'preact'
import type { Attribute, SpanDetails } from '../api/generated/client.ts'

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

/** A table of attributes. */
export function AttributeTable({ attributes }: { readonly attributes: readonly ShownAttribute[] }) {
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
      value={({ value }) => value}
    />
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
