import { useRef } from 'preact/hooks'
import { zoomTo } from '../state/choose-range.ts'
import { counted, formatCount, formatTime, sum } from '../state/format.ts'
import { useDragRange } from './drag-range.ts'

const HEIGHT = 40
/** Share of the height that the smallest count has, so that one of a thousand is seen. */
const LEAST = 0.06

/** A part of each bar: its name, a count a bar, and the class of its colour. */
interface BarPart {
  readonly name: string
  readonly counts: readonly number[]
  readonly class: string
}

/**
 * Counts over time as bars, in which a drag chooses the time range of the page. The image is named by the sum and the peak, and
 * each bar states its time. With `parts`, which add up to the counts, bars are divided, the first part at the bottom.
 */
export function Bars(props: {
  readonly counts: readonly number[]
  readonly from: string
  readonly bucketSeconds: number
  readonly noun: string
  readonly parts?: readonly BarPart[]
}) {
  const { counts, from, bucketSeconds, noun, parts = [] } = props
  const most = Math.max(1, ...counts)
  const total = sum(counts)
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
        {counts.map((count, i) =>
          count === 0 ? null : (
            <Bar
              key={i}
              at={i}
              count={count}
              most={most}
              parts={parts}
              time={formatTime(iso(start + i * bucketSeconds * 1_000))}
            />
          ),
        )}
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
        <span>
          {`${counted(total, noun)}, at most ${formatCount(most)} in a bar`}
          <Legend parts={parts} />
        </span>
        <span>{formatTime(iso(end))}</span>
      </figcaption>
    </figure>
  )
}

function Bar(props: {
  readonly at: number
  readonly count: number
  readonly most: number
  readonly parts: readonly BarPart[]
  readonly time: string
}) {
  const { at, count, most, parts, time } = props
  const height = Math.max(LEAST, count / most) * HEIGHT
  const own = parts.flatMap(part => (part.counts[at] ? [{ ...part, count: part.counts[at] ?? 0 }] : []))
  const names = own.map(part => `${part.name} ${formatCount(part.count)}`).join(', ')
  let below = 0
  return (
    <g>
      <title>{`${time}: ${formatCount(count)}${names && ` (${names})`}`}</title>
      {(own.length > 0 ? own : [{ name: '', class: '', count }]).map(part => {
        const size = (part.count / count) * height
        below += size
        return <rect key={part.name} class={part.class} x={at + 0.1} y={HEIGHT - below} width={0.8} height={size} />
      })}
    </g>
  )
}

/** The names of the parts that are there, with their colours and sums. */
function Legend({ parts }: { readonly parts: readonly BarPart[] }) {
  return (
    <>
      {parts
        .filter(({ counts }) => sum(counts) > 0)
        .map(({ name, counts, class: colour }) => (
          <span key={name} class="legend">
            <svg viewBox="0 0 8 8" width="10" height="10" aria-hidden="true">
              <rect class={colour} width="8" height="8" />
            </svg>{' '}
            {name} {formatCount(sum(counts))}
          </span>
        ))}
    </>
  )
}

const LINE_HEIGHT = 20
const LEAST_BAR = 0.1

/** Counts over time in a cell of a table, without an axis. The page has one image a row, each named by its sum and its peak. */
export function Sparkline({ counts }: { readonly counts: readonly number[] }) {
  const most = Math.max(1, ...counts)
  const total = sum(counts)
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
