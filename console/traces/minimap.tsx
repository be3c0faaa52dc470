import { useLayoutEffect, useRef } from 'preact/hooks'
import { isDark } from '../state/theme.ts'
import type { WaterfallModel } from './waterfall-model.ts'

const ERROR_STATUS = 2
/** Pixels of the picture, which the browser scales to the width of the page. Few rows have a line of pixels each. */
const WIDTH = 800
const LINES_MAX = 56

/** All rows of a trace in one picture: where spans are, where errors are, and which rows are in view. A click goes to its row. */
export function Minimap({ model }: { readonly model: WaterfallModel }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const rows = model.rows.value
  const scale = model.scale.value
  useLayoutEffect(() => {
    if (canvas.current) draw(canvas.current, model)
  }, [model, rows, scale, isDark.value])
  const goTo = (event: PointerEvent) => {
    if (event.buttons !== 1 || !(event.currentTarget instanceof HTMLElement)) return
    const { top, height } = event.currentTarget.getBoundingClientRect()
    const row = Math.floor(((event.clientY - top) / height) * rows.length)
    const span = rows[Math.min(Math.max(row, 0), rows.length - 1)]
    if (span !== undefined) model.active.value = span
  }
  return (
    <div class="minimap" onPointerDown={goTo} onPointerMove={goTo}>
      <canvas ref={canvas} width={WIDTH} height={LINES_MAX} role="img" aria-label="Overview of all rows of the trace" />
      <InView model={model} />
    </div>
  )
}

/** The rows in view. A component of its own: it changes with each step of scrolling, and the picture does not. */
function InView({ model }: { readonly model: WaterfallModel }) {
  const { first, end } = model.inView.value
  const count = Math.max(1, model.rows.value.length)
  const top = (first / count) * 100
  return <div class="minimap-view" style={{ top: `${top}%`, height: `${Math.max(2, (end / count) * 100 - top)}%` }} />
}

/** Draws how many spans there are at each pixel, in time that grows with rows plus pixels: each span changes two counters. */
function draw(canvas: HTMLCanvasElement, model: WaterfallModel): void {
  const context = canvas.getContext('2d')
  if (context === null) return
  const { columns } = model
  const rows = model.rows.value
  const { shareOf } = model.scale.value
  const width = WIDTH + 1
  const lines = Math.max(1, Math.min(LINES_MAX, rows.length))
  const begun = new Int32Array(width * lines)
  const failed = new Int32Array(width * lines)
  for (let row = 0; row < rows.length; row++) {
    const span = rows[row] as number
    const start = columns.starts[span] as number
    const line = Math.floor((row / rows.length) * lines) * width
    const from = Math.min(WIDTH - 1, Math.floor(shareOf(start) * WIDTH))
    const end = shareOf(start + Math.max(0, columns.durations[span] as number))
    const to = Math.max(from + 1, Math.min(WIDTH, Math.ceil(end * WIDTH)))
    const counters = columns.statuses[span] === ERROR_STATUS ? failed : begun
    counters[line + from] = (counters[line + from] as number) + 1
    counters[line + to] = (counters[line + to] as number) - 1
  }
  canvas.height = lines
  const image = context.createImageData(WIDTH, lines)
  const [plain, error] = [channelsOf(canvas, 'var(--accent)'), channelsOf(canvas, 'var(--error)')]
  const perLine = Math.max(1, rows.length / lines)
  for (let y = 0; y < lines; y++) {
    let running = 0
    let failing = 0
    for (let x = 0; x < WIDTH; x++) {
      running += begun[y * width + x] as number
      failing += failed[y * width + x] as number
      if (running + failing === 0) continue
      const [red = 0, green = 0, blue = 0] = failing > 0 ? error : plain
      const alpha = failing > 0 ? 255 : 60 + 195 * Math.min(1, running / perLine)
      image.data.set([red, green, blue, alpha], (y * WIDTH + x) * 4)
    }
  }
  context.putImageData(image, 0, 0)
}

function channelsOf(canvas: HTMLCanvasElement, colour: string): number[] {
  canvas.style.color = colour
  const { color } = getComputedStyle(canvas)
  return (color.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number)
}
