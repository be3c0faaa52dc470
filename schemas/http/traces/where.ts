import { z } from 'zod'
import { type attributeFilter, inJson } from '../filters.ts'

/** Operators of conditions on attributes that compare with a text. */
const TEXT_OPERATORS = ['=', '!=', 'contains'] as const
/** Operators that compare numbers. */
const NUMBER_OPERATORS = ['>', '>=', '<', '<='] as const
/** Operators without a value. */
const ALONE_OPERATORS = ['exists', 'absent'] as const
/** An operator of a condition on an attribute. */
export type AttributeOperator =
  | (typeof TEXT_OPERATORS)[number]
  | (typeof NUMBER_OPERATORS)[number]
  | (typeof ALONE_OPERATORS)[number]

const CONDITIONS_MAX = 8
const WHERE_CHARACTERS = 4_096

const key = z.string().min(1).max(1_024)
const condition = z.union([
  z.tuple([key, z.enum(ALONE_OPERATORS)]),
  z.tuple([key, z.enum(TEXT_OPERATORS), z.string().max(2_048)]).refine(isNotEmpty),
  z.tuple([key, z.enum(NUMBER_OPERATORS), z.string().refine(isNumber)]),
])

/** Every text contains the empty one. */
function isNotEmpty([, operator, value]: readonly [string, string, string]): boolean {
  return operator !== 'contains' || value !== ''
}

function isNumber(text: string): boolean {
  return text.trim() !== '' && Number.isFinite(Number(text))
}

/** An example of the filter by several attributes. */
export const EXAMPLE_WHERE = '[["http.route","contains","CART"],["http.route","exists"]]'

/** Filter by several attributes: a JSON list of conditions, all of which are met. */
export const whereFilter = inJson(
  z.array(condition).min(1).max(CONDITIONS_MAX),
  WHERE_CHARACTERS,
  `must be a JSON list of at most ${CONDITIONS_MAX} conditions, such as [["http.route","=","/cart"],["user.id","exists"]]`,
)
  .transform(conditions => conditions.map(([of, operator, value = '']) => ({ key: of, operator, value })))
  .optional()

/** Returns the conditions of the filters `attribute` and `where` together. */
export function attributeConditionsOf({
  attribute,
  where = [],
}: {
  readonly attribute?: z.infer<typeof attributeFilter>
  readonly where?: z.infer<typeof whereFilter>
}) {
  return attribute ? [{ ...attribute, operator: '=' as const }, ...where] : where
}
