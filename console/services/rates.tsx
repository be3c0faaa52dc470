import type { SpanRates } from '../api/generated/client.ts'
import { formatNanos } from '../state/format.ts'
import type { Column } from '../ui/data-table.tsx'

const NOTHING = '–'
const PERCENT = new Intl.NumberFormat(undefined, { style: 'percent', maximumSignificantDigits: 3 })
const SIGNED = new Intl.NumberFormat(undefined, {
  style: 'percent',
  maximumFractionDigits: 0,
  signDisplay: 'exceptZero',
})
const RATE = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 })
/** Changes below this share are not worth a look. */
const LEAST_CHANGE = 0.005

/** Returns a duration in its largest unit. */
export function formatMs(milliseconds: number | null | undefined): string {
  return milliseconds === null || milliseconds === undefined ? NOTHING : formatNanos(milliseconds * 1e6)
}

/** Returns a number of spans of a time as spans a second, or a minute if they are few. */
export function formatRate(spans: number, seconds: number): string {
  const aSecond = spans / seconds
  return aSecond >= 1 ? `${RATE.format(aSecond)}/s` : `${RATE.format(60 * aSecond)}/min`
}

/** Returns the share of spans that failed. */
export function formatErrors({ spans, errors }: Pick<SpanRates, 'spans' | 'errors'>): string {
  return spans === 0 ? NOTHING : PERCENT.format(errors / spans)
}

/** Returns by how much a value differs from that of the day before. */
export function formatChange(now: number | undefined, before: number | undefined): string {
  if (now === undefined || before === undefined || before === 0) return NOTHING
  const change = now / before - 1
  return Math.abs(change) < LEAST_CHANGE ? '±0 %' : SIGNED.format(change)
}

/** The columns of rates, for spans that were counted in this many seconds. */
export function ratesColumns<Row extends SpanRates>(seconds: number): readonly Column<Row>[] {
  return [
    {
      head: 'Rate',
      isNumber: true,
      title: ({ spans }) => `${spans.toLocaleString()} spans`,
      cell: ({ spans }) => formatRate(spans, seconds),
    },
    {
      head: 'Errors',
      isNumber: true,
      title: ({ errors }) => `${errors.toLocaleString()} spans`,
      cell: row => formatErrors(row),
    },
    ...(['p50', 'p95', 'p99'] as const).map(name => ({
      head: name,
      isNumber: true,
      cell: (row: Row) => formatMs(row.durationMs?.[name]),
    })),
  ]
}
