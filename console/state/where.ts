/** Operators of conditions on attributes, the longest first, as they are typed. */
const TYPED = ['!=', '>=', '<=', '=', '≠', '~', '>', '<'] as const
/** Operators of the API for typed ones that differ. */
const OPERATORS: Readonly<Record<string, string>> = { '≠': '!=', '~': 'contains' }
const NUMERIC: ReadonlySet<string> = new Set(['>', '>=', '<', '<='])

/** The most conditions of a search. */
const CONDITIONS_MAX = 8

/** A condition on an attribute, as the parameter `where` of the API and of addresses has it. */
export type Condition = readonly [key: string, operator: string, value?: string]

/** Returns the conditions of an address. What is not one is left out. */
export function whereOf(query: URLSearchParams): readonly Condition[] {
  try {
    const parsed: unknown = JSON.parse(query.get('where') || '[]')
    return Array.isArray(parsed) ? parsed.filter(isCondition).slice(0, CONDITIONS_MAX) : []
  } catch {
    return [] // An address that somebody has changed.
  }
}

function isCondition(value: unknown): value is Condition {
  return Array.isArray(value) && value.length >= 2 && value.length <= 3 && value.every(part => typeof part === 'string')
}

/** Returns conditions as the parameter has them, or undefined if there are none. */
export function whereText(conditions: readonly Condition[]): string | undefined {
  return conditions.length === 0 ? undefined : JSON.stringify(conditions)
}

/** Returns the parameter with a further condition. One that is there already is there once. */
export function whereWith(query: URLSearchParams, added: Condition): string | undefined {
  const text = JSON.stringify(added)
  const others = whereOf(query).filter(condition => JSON.stringify(condition) !== text)
  return whereText([...others, added].slice(-CONDITIONS_MAX))
}

/** Reads a condition as people type it: `http.route=/cart`, `status>=500`, `route~cart`, `user.id exists`, `!user.id`. */
export function parseCondition(typed: string): Condition | { readonly fault: string } {
  const text = typed.trim()
  const [, present] = /^(\S+) exists$/.exec(text) ?? []
  if (present !== undefined) return [present, 'exists']
  const [, missing] = /^!([^=\s]+)$/.exec(text) ?? [undefined, / absent$/.test(text) ? text.slice(0, -7) : undefined]
  if (missing !== undefined) return [missing, 'absent']
  const { operator, at } = firstOperator(text)
  if (operator === undefined) {
    return { fault: `“${shortened(text)}” needs a value or “exists”: write ${shortened(text)}=value.` }
  }
  const key = text.slice(0, at).trim()
  const value = text.slice(at + operator.length).trim()
  if (key === '') return { fault: `Write a key before “${operator}”: http.route=/cart.` }
  if (NUMERIC.has(operator) && (value === '' || !Number.isFinite(Number(value)))) {
    return { fault: `“${operator}” compares numbers: write ${shortened(key)}${operator}500.` }
  }
  if (operator === '~' && value === '') return { fault: 'Write the text that the value contains after “~”.' }
  return [key, OPERATORS[operator] ?? operator, value]
}

function firstOperator(text: string): { readonly operator: string | undefined; readonly at: number } {
  const at = text.search(/[=≠~<>]|!=/)
  return { operator: at < 0 ? undefined : TYPED.find(operator => text.startsWith(operator, at)), at }
}

const shortened = (text: string) => (text.length > 40 ? `${text.slice(0, 40)}…` : text)

const WORDS: Readonly<Record<string, string>> = {
  '!=': '≠',
  contains: 'contains',
  exists: 'exists',
  absent: 'is absent',
}

/** Returns a condition in words. */
export function describeCondition([key, operator, value]: Condition): string {
  return [key, WORDS[operator] ?? operator, value === '' ? '(empty)' : value]
    .filter(part => part !== undefined)
    .join(' ')
}

/** Returns the key of a condition that is being typed, once its operator is there, and the part of the value. */
export function typedValue(
  text: string,
): { readonly key: string; readonly operator: string; readonly value: string } | undefined {
  const { operator, at } = firstOperator(text)
  if (operator === undefined) return undefined
  return { key: text.slice(0, at).trim(), operator, value: text.slice(at + operator.length).trim() }
}
