import { useRef } from 'preact/hooks'
import { counted, formatCount, formatTime } from '../state/format.ts'
import { useDragRange } from './drag-range.ts'
import { zoomTo } from './time-filter.tsx'

const HEIGHT = 40
/** Share of the height that the smallest count has, so that one of a thousand is seen. */
const LEAST = 0.06

/**
 * Counts over time as bars, in which a drag chooses the time range of the page. The image is named by the sum and the peak, and
 * each bar states its time.
 */
export function Bars(props: {
  readonly counts: readonly number[]
  readonly from: string
  readonly bucketSeconds: number
  readonly noun: string
}) {
  const { counts, from, bucketSeconds, noun } = props
  const most = Math.max(1, ...counts)
  const total = counts.reduce((sum, count) => sum + count, 0)
  const start = Date.parse(from)
  const end = start + counts.length * bucketSeconds * 1_000
  const iso = (ms: number) => new Date(ms).toISOString()
  const drawing = useRef<SVGSVGElement>(null)
  const { dragged, ...handlers } = useDragRange(drawing, ({ from: a, to: b }) =>
    zoomTo(start + a * (end - start), start + b * (end - start)),
  )
  return (
    <figure class="bars" title="Drag over a part to show its time">
      <svg
        ref={drawing}
        {...handlers}
        viewBox={`0 0 ${counts.length} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${counted(total, noun)} between ${formatTime(iso(start))} and ${formatTime(iso(end))}, at most ${formatCount(most)} at once`}
      >
        {counts.map((count, i) => {
          if (count === 0) return null
          const height = Math.max(LEAST, count / most) * HEIGHT
          return (
            <rect key={i} x={i + 0.1} y={HEIGHT - height} width={0.8} height={height}>
              <title>{`${formatTime(iso(start + i * bucketSeconds * 1_000))}: ${formatCount(count)}`}</title>
            </rect>
          )
        })}
        {dragged && (
          <rect
            class="dragged"
            x={dragged.from * counts.length}
            y={0}
            width={(dragged.to - dragged.from) * counts.length}
            height={HEIGHT}
          />
        )}
      </svg>
      <figcaption>
        <span>{formatTime(iso(start))}</span>
        <span>{`${counted(total, noun)}, at most ${formatCount(most)} in a bar`}</span>
        <span>{formatTime(iso(end))}</span>
      </figcaption>
    </figure>
  )
}

const LINE_HEIGHT = 20
const LEAST_BAR = 0.1

/** Counts over time in a cell of a table, without an axis. The page has one image a row, each named by its sum and its peak. */
export function Sparkline({ counts }: { readonly counts: readonly number[] }) {
  const most = Math.max(1, ...counts)
  const total = counts.reduce((sum, count) => sum + count, 0)
  // One path for all bars: a page of 100 rows would have thousands of elements otherwise.
  const path = counts
    .map((count, i) => {
      if (count === 0) return ''
      const height = Math.max(LEAST_BAR, count / most) * LINE_HEIGHT
      return `M${i + 0.1} ${LINE_HEIGHT}v${-height.toFixed(2)}h.8v${height.toFixed(2)}z`
    })
    .join('')
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${counts.length || 1} ${LINE_HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${formatCount(total)} in this time, at most ${formatCount(total === 0 ? 0 : most)} in a bar`}
    >
      <path d={path} />
    </svg>
  )
}
