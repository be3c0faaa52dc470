/** A unit in which values are shown, and how many of the base unit it has. */
type Step = readonly [factor: number, name: string]

/** Units that go with each other, the smallest first. */
const BYTES: readonly Step[] = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'].map((name, i) => [1024 ** i, name])
const BITS: readonly Step[] = ['bit', 'kbit', 'Mbit', 'Gbit', 'Tbit'].map((name, i) => [1_000 ** i, name])
const TIMES: readonly Step[] = [
  [1e-9, 'ns'],
  [1e-6, 'µs'],
  [1e-3, 'ms'],
  [1, 's'],
  [60, 'min'],
  [3_600, 'h'],
  [86_400, 'd'],
]

interface Scale {
  readonly steps: readonly Step[]
  /** How many of the base unit a value of 1 is. */
  readonly factor: number
}

const scales = (steps: readonly Step[], units: Readonly<Record<string, number>>): [string, Scale][] =>
  Object.entries(units).map(([unit, factor]) => [unit, { steps, factor }])

/** Codes of UCUM, as OpenTelemetry's conventions have them, and the words that senders use instead. */
const SCALES: ReadonlyMap<string, Scale> = new Map([
  ...scales(BYTES, { By: 1, KiBy: 2 ** 10, MiBy: 2 ** 20, GiBy: 2 ** 30, TiBy: 2 ** 40, kBy: 1e3, MBy: 1e6, GBy: 1e9 }),
  ...scales(BYTES, { byte: 1, bytes: 1 }),
  ...scales(BITS, { bit: 1, kbit: 1e3, Mbit: 1e6, Gbit: 1e9 }),
  ...scales(TIMES, { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3_600, d: 86_400 }),
  ...scales(TIMES, { seconds: 1, milliseconds: 1e-3 }),
])

/** Codes that people do not read as they are written. */
const WORDS: Readonly<Record<string, string>> = { '1': '', Cel: '°C', '[degF]': '°F' }

/** Digits that are shown. A value with more has a sign of it. */
const DIGITS = 4
const ROUNDED = new Intl.NumberFormat(undefined, { maximumSignificantDigits: DIGITS })
const EXACT = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 15 })

/** Formats the values of a metric in its unit. Nothing is known of a step without a value. */
export interface ValueFormat {
  /** Returns a value in the unit of the same size, with `≈` if it is rounded. */
  readonly format: (value: number | null | undefined) => string
  /** Returns a value with all its digits, in the unit that was sent. */
  readonly exact: (value: number | null | undefined) => string
  /** Returns the marks of an axis, all in one unit. */
  readonly formatAll: (values: readonly number[]) => string[]
  /** Distances of the marks of an axis at which they are short, for uPlot. Undefined if those of the decimal system are. */
  readonly increments: number[] | undefined
}

const NOTHING = '–'

/** Returns the format of values in a unit, per second if they are rates. An empty unit is a plain number. */
export function valueFormat(unit: string, { isRate = false } = {}): ValueFormat {
  const { scale, prefix, suffix } = partsOf(unit, isRate)
  const stepOf = (size: number): Step => {
    const fitting = scale?.steps.findLast(([factor]) => factor <= size * scale.factor * (1 + 1e-12))
    return fitting ?? scale?.steps[0] ?? [1, prefix]
  }
  const scaled = (value: number, [factor]: Step) => (value * (scale?.factor ?? 1)) / factor
  const named = (text: string, [, name]: Step) => text + (name && (name === '%' ? '' : ' ') + name) + suffix
  return {
    format: value => {
      if (value === null || value === undefined) return NOTHING
      const step = stepOf(value === 0 ? 1 / (scale?.factor ?? 1) : Math.abs(value))
      const shown = scaled(value, step)
      if (scale === undefined && Number.isSafeInteger(shown)) return named(EXACT.format(shown), step)
      const isRounded = Math.abs(Number(shown.toPrecision(DIGITS)) - shown) > Math.abs(shown) * 1e-12
      return (isRounded ? '≈ ' : '') + named(ROUNDED.format(shown), step)
    },
    exact: value =>
      value === null || value === undefined
        ? NOTHING
        : EXACT.format(value) + (unit && unit !== '1' ? ` ${annotationless(unit)}` : '') + (isRate ? '/s' : ''),
    formatAll: values => {
      const step = stepOf(Math.max(0, ...values.map(Math.abs)) || 1 / (scale?.factor ?? 1))
      return values.map(value => named(EXACT.format(Number(scaled(value, step).toPrecision(12))), step))
    },
    increments: scale && scale.steps !== BITS ? incrementsOf(scale) : undefined,
  }
}

/** Returns a unit for people, such as `order` for `{order}`. Empty for a plain number. */
export function unitName(unit: string): string {
  return unit === '1' ? '' : annotationless(unit)
}

/** Returns a unit whose annotations are words: `{request}/s` is `request/s`. */
function annotationless(unit: string): string {
  return unit.replaceAll(/1?\{([^}]*)\}/g, '$1')
}

/** Returns what of a unit is scaled, what is written, and what follows, such as `/s`. */
function partsOf(unit: string, isRate: boolean): { scale: Scale | undefined; prefix: string; suffix: string } {
  const slash = unit.indexOf('/')
  const [counted, per] = slash > 0 ? [unit.slice(0, slash), annotationless(unit.slice(slash))] : [unit, '']
  const suffix = per + (isRate ? '/s' : '')
  return { scale: SCALES.get(counted), prefix: WORDS[counted] ?? annotationless(counted), suffix }
}

/** Returns distances at which the marks of an axis are round in the units of a scale. */
function incrementsOf({ steps, factor }: Scale): number[] {
  const base = steps === BYTES ? steps.flatMap(([size]) => POWERS_OF_TWO.map(n => n * size)) : DECADES.concat(CLOCK)
  return base.map(size => size / factor).sort((a, b) => a - b)
}

const POWERS_OF_TWO = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
const DECADES = Array.from({ length: 10 }, (_, i) => 10 ** (i - 9)).flatMap(decade => [1, 2, 5].map(n => n * decade))
const CLOCK = [
  10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000,
  1_728_000, 4_320_000, 8_640_000, 17_280_000, 43_200_000,
]
