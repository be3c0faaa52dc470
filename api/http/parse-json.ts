/** The digits of a number, which JavaScript passes to a reviver beside its value. */
interface NumberSource {
  readonly source?: string
}

/** Parses JSON of stored attributes. `integer` returns what a number without a fraction becomes, from its digits. */
export function parseJson(json: string, integer: (digits: string) => unknown): unknown {
  const revive = (_: string, value: unknown, { source = '' }: NumberSource) =>
    typeof value === 'number' && /^-?\d+$/.test(source) ? integer(source) : value
  return JSON.parse(json, revive as Parameters<typeof JSON.parse>[1])
}

/** Returns the number of these digits, or the digits if a number of JSON does not have them exactly. */
export function exactNumber(digits: string): number | string {
  const number = Number(digits)
  return Number.isSafeInteger(number) ? number : digits
}
