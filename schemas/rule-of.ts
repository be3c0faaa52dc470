import { z } from 'zod'

/** How many unknown fields a message names. The client chooses their number and length, so both are bounded. */
const NAMED_MAX = 3
const NAME_MAX_CHARACTERS = 64

/**
 * States the rule that a value breaks, in the words of all refusals: it follows the name of the field. Schemas state a rule of
 * their own only where this one would say less.
 */
export function ruleOf(issue: z.core.$ZodRawIssue): string {
  if (brokenValue(issue) === undefined && ABSENT_CODES.has(issue.code)) return 'is required'
  const number = numberOf(issue)
  if (number === undefined) return brokenRule(issue)
  // Beyond it, numbers of JSON are no longer exact.
  return issue.code === 'too_big' && number.maxValue === SAFE_MAX ? `must be at most ${SAFE_MAX}` : numberRule(number)
}

const SAFE_MAX = Number.MAX_SAFE_INTEGER

/** Returns the value that breaks the rule: the discriminator of a discriminated union. */
function brokenValue({ input, discriminator }: z.core.$ZodRawIssue): unknown {
  return typeof discriminator === 'string' ? (input as Record<string, unknown>)[discriminator] : input
}

const ABSENT_CODES: ReadonlySet<string> = new Set(['invalid_type', 'invalid_value', 'invalid_union'])

function brokenRule(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${typeName(issue)}`
    case 'invalid_value':
      return mustBeOneOf(issue.values as readonly unknown[])
    case 'invalid_union':
      return Array.isArray(issue.options) ? mustBeOneOf(issue.options) : 'must be a value of another type'
    case 'too_small':
      return atLeast(String(issue.origin), Number(issue.minimum))
    case 'too_big':
      return `must have at most ${issue.maximum} ${UNITS[String(issue.origin)]}`
    case 'invalid_format':
      return FORMATS[issue.format as string] ?? `must match ${issue.pattern}`
    case 'unrecognized_keys':
      return `must not have the field ${namesOf(issue.keys as readonly string[])}`
    default:
      return 'is invalid'
  }
}

/** States which values are accepted. */
export function mustBeOneOf(values: readonly unknown[]): string {
  return values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(', ')}`
}

/** Returns names that a client has chosen, quoted and bounded. */
export function namesOf(names: readonly string[]): string {
  return names
    .slice(0, NAMED_MAX)
    .map(name => JSON.stringify(name.slice(0, NAME_MAX_CHARACTERS)))
    .join(', ')
}

const FORMATS: Readonly<Record<string, string>> = {
  date: 'must be a day, such as 2026-11-21',
  datetime: 'must be an RFC 3339 time, such as 2026-11-21T10:00:00Z',
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  boolean: 'true or false',
  array: 'an array',
  object: 'an object',
  record: 'an object',
}

function typeName({ expected, path }: z.core.$ZodRawIssue): string {
  const type = TYPES[String(expected)] ?? `of the type ${expected}`
  return type === TYPES.object && !(path as PropertyKey[] | undefined)?.length ? 'a JSON object' : type
}

/** Returns the schema of a number, if it is one that is broken. */
function numberOf({ schema, inst }: z.core.$ZodRawIssue): z.ZodNumber | undefined {
  return [schema, inst].find(part => part instanceof z.ZodNumber)
}

/** States the type and the bounds of a number. Those of every integer are no rule of ours. */
function numberRule({ isInt, minValue, maxValue }: z.ZodNumber): string {
  const type = isInt ? 'must be a whole number' : 'must be a number'
  const least = minValue === Number.MIN_SAFE_INTEGER ? null : minValue
  const most = maxValue === SAFE_MAX ? null : maxValue
  if (least !== null && most !== null) return `${type} from ${least} to ${most}`
  if (least !== null) return `${type} of ${least} or more`
  return most === null ? type : `${type} of at most ${most}`
}

/** Units of what has a length. */
const UNITS: Readonly<Record<string, string>> = { string: 'characters', array: 'items' }

function atLeast(origin: string, minimum: number): string {
  if (minimum === 1) return origin === 'array' ? 'must have at least one item' : 'must not be empty'
  return `must have at least ${minimum} ${UNITS[origin]}`
}
