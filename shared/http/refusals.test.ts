import { expect, it } from 'vitest'
import type { z } from 'zod'
import { allOperations } from '../../schemas/http/all-operations.ts'
import { manifestEntrySchema } from '../../schemas/http/source-maps/schemas.ts'
import { checkValue } from './check-value.ts'

/** Values that break some rule of every field. */
const HOSTILE: readonly unknown[] = [
  ...[undefined, null, true, -1, 0, 1.5, 1e300, Number.MAX_SAFE_INTEGER],
  ...['', 'x', ' ', '\0', '\ud800', '=', '2026-99-99', '../a', '/a', 'a\\b', 'x'.repeat(70_000)],
  ...[[], ['x'], [null], [{}], Array(10_001).fill('x'), {}, { x: null }, { key: 'x'.repeat(70_000) }],
]
/** Query parameters are texts. */
const HOSTILE_TEXTS = HOSTILE.filter(value => value === undefined || typeof value === 'string')

/** Words of the validator, which no client sees. */
const VALIDATOR =
  /Invalid |Too (small|big)|expected|, received|undefined|NaN|Unrecognized|is invalid$|another type|must match/
/** A field or the body, and a rule. */
const STYLE = /^(the body|[\w[\].-]+) (must |is required($|[:,] )|is invalid: )/

const operations = allOperations({ identityProviders: ['Auth0', 'Clerk', 'Supabase'] })
const bodies = operations.flatMap(({ operationId, body }) =>
  Object.values(body?.contents ?? {}).flatMap(({ schema, example }) =>
    schema === undefined ? [] : [{ name: operationId, schema, example, values: HOSTILE }],
  ),
)
const queries = operations.flatMap(({ operationId, parameters }) =>
  parameters?.query ? [{ name: operationId, schema: parameters.query, example: {}, values: HOSTILE_TEXTS }] : [],
)
const entry = { path: 'a.map', hash: '', debugId: '', chunkUrl: '' }

it.each([...bodies, ...queries, { name: 'a file', schema: manifestEntrySchema, example: entry, values: HOSTILE }])(
  'every refusal of $name names the field and the rule',
  ({ schema, example, values }) => {
    const faults = [...faultsOf(schema, example, values)]
    expect(faults.filter(fault => VALIDATOR.test(fault) || !STYLE.test(fault))).toEqual([])
    if (values === HOSTILE) expect(faults.length).toBeGreaterThan(1)
  },
)

/** Returns the faults of an example in which one value, at any depth, is another one, or there is one more. */
function faultsOf(schema: z.ZodType, example: unknown, values: readonly unknown[]): Set<string> {
  const changed = [...values, ...changesOf(example, values), ...changesOf(withKeysOf(schema, example), values)]
  const checks = changed.map(value => checkValue(schema, value))
  return new Set(
    checks.flatMap(check => (check.ok ? [] : check.issues.map(({ path, message }) => textOf(path, message)))),
  )
}

function textOf(path: readonly PropertyKey[], rule: string): string {
  return `${path.join('.') || 'the body'} ${rule}`
}

function* changesOf(value: unknown, values: readonly unknown[]): Generator<unknown> {
  if (typeof value !== 'object' || value === null) return
  const copyWith = (key: string, replaced: unknown) => {
    if (Array.isArray(value)) return value.with(Number(key), replaced)
    const { [key]: _, ...rest } = value as Record<string, unknown>
    return replaced === undefined ? rest : { ...rest, [key]: replaced }
  }
  for (const [key, member] of Object.entries(value)) {
    for (const replaced of [...values, ...changesOf(member, values)]) yield copyWith(key, replaced)
  }
  if (!Array.isArray(value)) yield { ...value, unknownField: 1 }
}

/** Returns the example with every field of its schema, at the first depth and below its objects. */
function withKeysOf(schema: z.ZodType, example: unknown): unknown {
  const shapes = shapesOf(schema)
  if (shapes.length === 0) return example
  const known = (example ?? {}) as Record<string, unknown>
  return Object.fromEntries(
    shapes.flatMap(shape =>
      Object.entries(shape).map(([key, member]) => [key, withKeysOf(member as z.ZodType, known[key])]),
    ),
  )
}

/** Returns the shapes of the objects in a schema. */
function shapesOf(schema: z.ZodType): z.core.$ZodShape[] {
  const def = { ...schema._zod.def } as Record<string, unknown>
  if (def.type === 'object') return [def.shape as z.core.$ZodShape]
  const inner = [def.innerType, def.in, def.out, ...((def.options as unknown[]) ?? [])]
  return inner.flatMap(part => (part === undefined ? [] : shapesOf(part as z.ZodType)))
}
