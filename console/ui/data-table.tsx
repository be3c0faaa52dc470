import type { ComponentChildren } from 'preact'

/** A column of a {@link DataTable}. */
export interface Column<Row> {
  readonly head: string
  readonly cell: (row: Row, index: number) => ComponentChildren
  readonly isNumber?: boolean
  /** The value of a cell says by itself what it is, so narrow screens show it without its heading. */
  readonly isPlain?: boolean
  readonly class?: string
  readonly title?: (row: Row) => string | undefined
}

/** A list with a heading for each column and each row. The first column names its row. */
export function DataTable<Row>(props: {
  /** Names the table for readers of the screen. */
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row, index: number) => string | number
  /** Replaces a table without rows. */
  readonly empty?: ComponentChildren
  readonly class?: string
}) {
  const { caption, columns, rows, keyOf, empty } = props
  if (rows.length === 0 && empty !== undefined) return <>{empty}</>
  return (
    <table class={props.class ?? 'list'}>
      <caption class="hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ head, isNumber }) => (
            <th key={head} scope="col" class={isNumber ? 'number' : undefined}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={keyOf(row, index)}>{columns.map((column, at) => cellOf(column, row, index, at === 0))}</tr>
        ))}
      </tbody>
    </table>
  )
}

function cellOf<Row>(column: Column<Row>, row: Row, index: number, isHeading: boolean) {
  const { head, cell, isNumber, isPlain } = column
  if (isHeading) {
    return (
      <th key={head} scope="row">
        {cell(row, index)}
      </th>
    )
  }
  return (
    <td
      key={head}
      data-label={isPlain ? undefined : head}
      class={isNumber ? 'number' : column.class}
      title={column.title?.(row)}
    >
      {cell(row, index)}
    </td>
  )
}
