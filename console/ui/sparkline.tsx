import { formatCount } from '../state/format.ts'

const HEIGHT = 20
const LEAST = 0.1

/** Counts over time in a cell of a table, without an axis. The page has one image a row, each named by its sum and its peak. */
export function Sparkline({ counts }: { readonly counts: readonly number[] }) {
  const most = Math.max(1, ...counts)
  const total = counts.reduce((sum, count) => sum + count, 0)
  // One path for all bars: a page of 100 rows would have thousands of elements otherwise.
  const path = counts
    .map((count, i) => {
      if (count === 0) return ''
      const height = Math.max(LEAST, count / most) * HEIGHT
      return `M${i + 0.1} ${HEIGHT}v${-height.toFixed(2)}h.8v${height.toFixed(2)}z`
    })
    .join('')
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${counts.length || 1} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${formatCount(total)} in this time, at most ${formatCount(total === 0 ? 0 : most)} in a bar`}
    >
      <path d={path} />
    </svg>
  )
}
