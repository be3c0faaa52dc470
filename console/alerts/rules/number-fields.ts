/** The numbers that the API accepts in a field. */
interface NumberRule {
  readonly min: number
  readonly max: number
  readonly isWhole?: boolean
}

const COUNT = { min: 1, max: 1e9, isWhole: true }
const MINUTES = { min: 1, max: 1_440, isWhole: true }

/** Fields that are numbers. A test compares their rules with those of the API. */
export const NUMBERS = {
  minPeople: COUNT,
  everyMinutes: MINUTES,
  'spiking.times': { min: 1, max: 1_000 },
  'spiking.atLeast': COUNT,
  'spreading.people': COUNT,
  'spreading.minutes': MINUTES,
  'metric.value': { min: -1e300, max: 1e300 },
  'metric.minutes': MINUTES,
  'errors.percent': { min: 0.001, max: 100 },
  'errors.minutes': MINUTES,
  'errors.atLeast': COUNT,
  'latency.p95Ms': { min: 0.001, max: 1e9 },
  'latency.minutes': MINUTES,
  'latency.atLeast': COUNT,
  'silent.minutes': MINUTES,
} as const satisfies Record<string, NumberRule>
/** A field that is a number. */
export type NumberField = keyof typeof NUMBERS

/** Returns why a text is not accepted as the number of a field. */
export function faultOfNumber(field: NumberField, text: string, { isRequired = false } = {}): string | undefined {
  if (text.trim() === '') return isRequired || text !== '' ? 'Write a number.' : undefined
  const { min, max, isWhole }: NumberRule = NUMBERS[field]
  const value = Number(text)
  if (Number.isNaN(value)) return `"${text.slice(0, 40)}" is not a number.`
  if (isWhole && !Number.isInteger(value)) return 'Write a whole number.'
  if (value < min) return `It must be at least ${min}.`
  return value > max ? `It must be at most ${max.toLocaleString()}.` : undefined
}

const CHARACTERS_MAX = 200

/** Returns why a text is not accepted. Counts code points, as the API does. */
export function faultOfText(text: string, max = CHARACTERS_MAX): string | undefined {
  if (text === '') return 'Write something here.'
  return [...text].length > max ? `It must have at most ${max.toLocaleString()} characters.` : undefined
}
