import { readFileSync, writeFileSync } from 'node:fs'
import { load } from 'js-yaml'

const CHART = new URL('penstock/', import.meta.url)
/** Page that lists the values of the chart. */
export const VALUES_FILE = new URL('values.md', import.meta.url)
/** A default that is longer is only in values.yaml. */
const DEFAULT_MAX_LENGTH = 60

interface Schema {
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Schema>>
  readonly description?: string
  readonly type?: string | readonly string[]
  readonly enum?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema | boolean
}

/** A value of the chart that is not a group of others. `shared` names the definition of one that several components have. */
interface ChartValue {
  readonly path: string
  readonly type: string
  readonly fallback: unknown
  readonly description: string | undefined
  readonly shared: string | undefined
}

/** Returns every value of values.schema.json, with its default in values.yaml. */
export function chartValues(): ChartValue[] {
  const schema: Schema = JSON.parse(readFileSync(new URL('values.schema.json', CHART), 'utf8'))
  const defaults = load(readFileSync(new URL('values.yaml', CHART), 'utf8'))
  const resolve = (each: Schema): Schema => {
    const definition = each.$ref === undefined ? undefined : schema.$defs?.[each.$ref.replace('#/$defs/', '')]
    return definition === undefined ? each : { ...definition, ...each }
  }
  const visit = (each: Schema, path: string, fallback: unknown): ChartValue[] => {
    const { properties, additionalProperties, description, ...found } = resolve(each)
    const named = Object.entries(properties ?? {}).flatMap(([name, child]) =>
      visit(child, path === '' ? name : `${path}.${name}`, (fallback as Record<string, unknown> | undefined)?.[name]),
    )
    const entry = typeof additionalProperties === 'object' ? resolve(additionalProperties) : undefined
    const ofEntries = entry?.properties === undefined ? [] : visit(entry, `${path}.<name>`, undefined)
    if (properties !== undefined) return [...named, ...ofEntries]
    const type = typeOf(found)
    return [{ path, type, fallback, description, shared: each.$ref?.replace('#/$defs/', '') }, ...ofEntries]
  }
  return visit(schema, '', defaults)
}

function typeOf({ type, enum: allowed }: Schema): string {
  if (allowed !== undefined) return allowed.map(value => (value === '' ? 'empty' : value)).join(', ')
  return [type ?? []].flat().join(' or ').replace('array', 'list').replace('object', 'map')
}

/** Returns values.md. Options that components have in common are listed once. */
export function valuesPage(): string {
  const values = chartValues()
  const common = new Set(values.filter(({ path, shared }) => path === shared).map(({ path }) => path))
  const rows = values
    .filter(({ path, shared }) => shared === undefined || path === shared || !common.has(shared))
    .filter(({ path }) => !path.includes('.topologySpread.'))
    .map(
      ({ path, type, fallback, description }) => `| \`${path}\` | ${type} | ${defaultOf(fallback)} | ${description} |`,
    )
  return [
    '# Values of the chart',
    '',
    '[README.md](README.md) explains them. `node deploy/kubernetes/write-values.ts` writes this page.',
    '',
    'Edge, workers, each pool, API, migrations and toolbox also have the values of every pod, `podAnnotations` to',
    '`topologySpread`: their maps are merged over these, their lists are added, and their `priorityClassName` wins.',
    '',
    '| value | type | default | meaning |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
}

function defaultOf(value: unknown): string {
  if (value === undefined || value === '') return ''
  const text = JSON.stringify(value)
  return text.length > DEFAULT_MAX_LENGTH ? '[values.yaml](penstock/values.yaml)' : `\`${text}\``
}

if (import.meta.main) writeFileSync(VALUES_FILE, valuesPage())
