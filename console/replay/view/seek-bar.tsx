import { useComputed } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import { Axis } from '../axis.ts'
import type { Player } from '../player.ts'
import { type RecordedWindow, type Recording, stretchAt } from '../recording.ts'
import type { SessionError } from '../session-errors.ts'
import { clockTime, elapsed, explain, STRETCH_NAMES } from '../words.ts'

/** Steps of the keys, in ms. */
export const STEP_MS = 5_000
const LARGE_STEP_MS = 60_000
/** Marks that are drawn. More of them look like one. */
const MARKS_MAX = 200

const percent = (share: number) => `${(share * 100).toFixed(3)}%`

/** The time line of a recording: a lane for each window with what each part of it is, the errors, and the time that is shown. */
export function SeekBar(props: {
  readonly player: Player
  readonly errors: readonly SessionError[]
  /** Called with the time that the user has chosen. */
  readonly onStand: (at: number) => void
}) {
  const { player, errors, onStand } = props
  const { recording, time, shown } = player
  const axis = useMemo(() => new Axis(recording), [recording])
  const bar = useRef<HTMLDivElement>(null)
  // The signal is given to the element, which follows it without the bar being rendered again for every frame.
  const position = useComputed(() => `left: ${percent(axis.positionOf(time.value))}`)
  const seconds = useComputed(() => Math.round((time.value - recording.startMs) / 1_000))
  const valueText = useComputed(() => {
    const total = `${elapsed(time.value - recording.startMs)} of ${elapsed(recording.endMs - recording.startMs)}`
    const stretch = shown.value && stretchAt(shown.value, time.value)
    const kind = stretch && stretch.kind !== 'played' ? `. ${STRETCH_NAMES[stretch.kind]}` : ''
    return `${clockTime(time.value)}, ${total}${kind}`
  })

  const seekTo = (event: PointerEvent) => {
    const box = bar.current?.getBoundingClientRect()
    if (box) player.seek(axis.timeAt((event.clientX - box.left) / box.width))
  }
  const press = (event: KeyboardEvent) => {
    const target = targetsOf(time.value, recording)[event.key]
    if (target === undefined) return
    event.preventDefault()
    player.seek(target)
    onStand(time.value)
  }
  return (
    <div
      ref={bar}
      class="seek-bar"
      role="slider"
      tabIndex={0}
      aria-label="Time of the recording"
      aria-valuemin={0}
      aria-valuemax={Math.round((recording.endMs - recording.startMs) / 1_000)}
      aria-valuenow={seconds.value}
      aria-valuetext={valueText.value}
      onKeyDown={press}
      onPointerDown={event => {
        event.currentTarget.setPointerCapture(event.pointerId)
        seekTo(event)
      }}
      onPointerUp={() => onStand(time.value)}
      onPointerMove={event => event.buttons === 1 && seekTo(event)}
    >
      {recording.windows.map(window => (
        <Lane key={window.id} window={window} isShown={window === shown.value} axis={axis} />
      ))}
      {errors.slice(0, MARKS_MAX).map(({ at, text }) => (
        <span key={`${at} ${text}`} class="error-mark" style={{ left: percent(axis.positionOf(at)) }} title={text} />
      ))}
      <span class="play-head" style={position} />
    </div>
  )
}

/** Returns the times to which keys seek. */
function targetsOf(time: number, { startMs, endMs }: Recording): Readonly<Record<string, number>> {
  return {
    ArrowLeft: time - STEP_MS,
    ArrowDown: time - STEP_MS,
    ArrowRight: time + STEP_MS,
    ArrowUp: time + STEP_MS,
    PageDown: time - LARGE_STEP_MS,
    PageUp: time + LARGE_STEP_MS,
    Home: startMs,
    End: endMs,
  }
}

/** A window of the recording, with what each part of its time is. */
function Lane(props: { readonly window: RecordedWindow; readonly isShown: boolean; readonly axis: Axis }) {
  const { window, isShown, axis } = props
  return (
    <div class={isShown ? 'lane shown' : 'lane'}>
      {window.stretches.map(stretch => {
        const left = axis.positionOf(stretch.from)
        const width = axis.positionOf(stretch.to) - left
        return (
          <span
            key={`${stretch.kind} ${stretch.from}`}
            class={`stretch ${stretch.kind}`}
            style={{ left: percent(left), width: percent(width) }}
            title={explain(stretch)}
          >
            {stretch.kind !== 'played' && <span class="stretch-name">{STRETCH_NAMES[stretch.kind]}</span>}
          </span>
        )
      })}
    </div>
  )
}
