import { Fragment } from 'preact'
import type { Attribute, SpanDetails } from '../api/generated/client.ts'

type ShownAttribute = Pick<Attribute, 'key' | 'value'>

/** A table of attributes. */
export function AttributeTable({ attributes }: { readonly attributes: readonly ShownAttribute[] }) {
  return (
    <table class="attributes">
      <tbody>
        {attributes.map(({ key, value }, i) => (
          <tr key={i}>
            <th scope="row">
              {partsOf(key).map((part, at) => (
                <Fragment key={at}>
                  {part}
                  <wbr />
                </Fragment>
              ))}
            </th>
            <td>{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
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
