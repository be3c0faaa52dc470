import { expect, it } from 'vitest'
import { adviceFor, compareTables } from './compare-schema.ts'
import { type DescribedTable, madeNames } from './describe-tables.ts'
import { parseMigration } from './migration-files.ts'

const column = (name: string, type: string) => ({
  name,
  type,
  defaultKind: '',
  defaultExpression: '',
  codec: '',
  comment: '',
})
const SPANS: DescribedTable = {
  ...{ name: 'spans', engine: 'MergeTree', sortingKey: 'trace_id', views: ['buckets_from_spans'] },
  ...{ columns: [column('trace_id', 'String'), column('at', 'DateTime')], statement: 'CREATE TABLE …' },
}
const VIEW: DescribedTable = {
  ...{ name: 'buckets_from_spans', engine: 'MaterializedView', sortingKey: '', views: [] },
  ...{ columns: [column('trace_id', 'String')], statement: 'CREATE MATERIALIZED VIEW …' },
}
const MADE = [VIEW, SPANS]

/** Returns the advice for each difference of a database. */
const advice = (found: readonly DescribedTable[]) => compareTables(MADE, found).map(adviceFor)

it('a complete database does not differ, whatever an operator has added to it', () => {
  const added = { ...SPANS, name: 'notes_of_an_operator' }
  const wider = { ...SPANS, columns: [column('note', 'String'), ...SPANS.columns] }
  expect(advice([wider, VIEW, added])).toEqual([])
})

it('names what is missing, and the command that makes it again', () => {
  expect(advice([VIEW])).toEqual(['the table spans is missing: run npm run migrate'])
  expect(advice([SPANS])).toEqual(['the materialized view buckets_from_spans is missing: run npm run migrate'])
  expect(advice([{ ...SPANS, columns: [column('trace_id', 'String')] }, VIEW])).toEqual([
    'the column at of the table spans is missing: run npm run migrate',
  ])
})

it('names what was changed, which no command changes back', () => {
  expect(advice([{ ...SPANS, engine: 'Log' }, VIEW])).toEqual([
    'the table spans has the engine Log instead of MergeTree: change it back',
  ])
  expect(advice([{ ...SPANS, columns: [column('trace_id', 'String'), column('at', 'Date')] }, VIEW])).toEqual([
    'the column at of the table spans is Date instead of DateTime: change it back',
  ])
  expect(advice([{ ...SPANS, sortingKey: 'at' }, VIEW])).toEqual([
    'the table spans is sorted by at instead of trace_id: change it back',
  ])
  expect(advice([SPANS, { ...VIEW, columns: [] }])).toEqual([
    'the column trace_id of the table buckets_from_spans is missing: change it back',
  ])
})

it('knows which table a missing view reads', () => {
  expect(compareTables(MADE, [SPANS])).toMatchObject([{ kind: 'view', source: 'spans' }])
})

it('tables and views of the schema are those that migrations create or rename', () => {
  const text = [
    'CREATE TABLE IF NOT EXISTS spans (x UInt8) ENGINE = Null;',
    `CREATE MATERIALIZED VIEW IF NOT EXISTS \${database}.v TO totals AS SELECT 1 FROM spans;`,
    'ALTER TABLE other ADD COLUMN IF NOT EXISTS x UInt8;',
    'RENAME TABLE IF EXISTS v TO `w`;\n',
  ].join('\n')
  expect([...madeNames([parseMigration('0001_a.sql', text)])]).toEqual(['spans', 'v', 'w'])
})
