import { useComputed } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { counted, formatSeconds } from '../../state/format.ts'
import { isForShortcuts } from '../../state/keys.ts'
import { type Player, SPEEDS } from '../player.ts'
import type { Recording } from '../recording.ts'
import { neighbourOf, type SessionError, type VisitedError } from '../session-errors.ts'
import { clockTime, elapsed, explain, STRETCH_NAMES } from '../words.ts'
import { Screen } from './screen.tsx'
import { SeekBar, STEP_MS } from './seek-bar.tsx'

/** Before an error, so that what led to it is seen. */
const LEAD_MS = 2_000

/** Shorter times that are skipped are not worth a word. */
const STATED_MS = 1_000
const WITHOUT = { activity: 'activity', picture: 'a picture' } as const

interface Props {
  readonly player: Player
  readonly startsAt: number
  readonly errors: readonly SessionError[]
  /** Called with the time at which the player stands, for the address. */
  readonly onStand: (at: number) => void
  /** Called with a speed or a window that the user has chosen, for the address. Undefined is the usual one. */
  readonly onChoose: (
    choice: { readonly speed?: string | undefined } | { readonly window?: string | undefined },
  ) => void
}

/** The player of a recording: picture, time line, controls and keys. */
export function PlayerView({ player, startsAt, errors, onStand, onChoose }: Props) {
  const [said, say] = useState('')
  const { time, isPlaying } = player
  const seek = (at: number) => {
    player.seek(at)
    onStand(player.time.value)
  }
  const visited = useRef<VisitedError>(undefined)
  const goToError = (direction: -1 | 1) => {
    const index = neighbourOf(errors, direction, time.value, visited.current)
    const error = errors[index]
    if (error === undefined) return say(direction > 0 ? 'No error after this time' : 'No error before this time')
    seek(error.at - LEAD_MS)
    visited.current = { error, from: time.value }
    say(`Error ${index + 1} of ${errors.length}: ${error.text}, at ${clockTime(error.at)}`)
  }
  const toggle = () => {
    player.toggle()
    say(isPlaying.value ? 'Playing' : `Paused at ${clockTime(time.value)}`)
    if (!isPlaying.value) onStand(time.value)
  }
  usePlayerKeys({ toggle, error: goToError, step: direction => seek(time.value + direction * STEP_MS) })
  const skipped = player.skipped.value
  useEffect(() => {
    if (skipped && skipped.to - skipped.from >= STATED_MS)
      say(`Skipped ${formatSeconds((skipped.to - skipped.from) / 1_000)} without ${WITHOUT[skipped.without]}`)
  }, [skipped])
  return (
    <section class="player" aria-label="Player">
      <Screen player={player} startsAt={startsAt} />
      <SeekBar player={player} errors={errors} onStand={onStand} />
      <Controls {...{ player, errors, onChoose, toggle, goToError }} />
      <p role="status" class="player-said quiet">
        {said}
      </p>
      {isMoment(player.recording) && (
        <p class="quiet">All events of this recording have the same time, so that there is nothing to play.</p>
      )}
      {player.refused.value > 0 && (
        <p class="quiet">{counted(player.refused.value, 'recorded event')} could not be played.</p>
      )}
      <Stretches player={player} onSeek={seek} />
    </section>
  )
}

/** Reports whether a recording has no length. */
const isMoment = ({ startMs, endMs }: Recording) => startMs === endMs

interface ControlsProps extends Pick<Props, 'player' | 'errors' | 'onChoose'> {
  readonly toggle: () => void
  readonly goToError: (direction: -1 | 1) => void
}

function Controls({ player, errors, onChoose, toggle, goToError }: ControlsProps) {
  const { recording, time, isPlaying, speed, skipsIdle } = player
  // Texts, because they change once a second, while the time changes with every frame.
  const second = useComputed(() => elapsed(time.value - recording.startMs))
  const clock = useComputed(() => clockTime(time.value))
  return (
    <div class="player-controls">
      <button type="button" class="play" onClick={toggle} disabled={isMoment(recording)} aria-keyshortcuts="Space">
        {isPlaying.value ? 'Pause' : 'Play'}
      </button>
      <span class="player-time">
        {second.value} <span class="quiet">of {elapsed(recording.endMs - recording.startMs)}</span>{' '}
        <span class="quiet">· {clock.value}</span>
      </span>
      <button type="button" onClick={() => goToError(-1)} disabled={errors.length === 0} aria-keyshortcuts="Shift+E">
        Previous error
      </button>
      <button type="button" onClick={() => goToError(1)} disabled={errors.length === 0} aria-keyshortcuts="E">
        Next error
      </button>
      <span class="player-choices">
        <label>
          Speed{' '}
          <select
            value={speed.value}
            onChange={({ currentTarget: { value } }) => onChoose({ speed: value === '1' ? undefined : value })}
          >
            {SPEEDS.map(value => (
              <option key={value} value={value}>
                {value}×
              </option>
            ))}
          </select>
        </label>
        {recording.windows.length > 1 && <WindowChoice player={player} onChoose={onChoose} />}
        <label class="check">
          <input
            type="checkbox"
            checked={skipsIdle.value}
            onChange={event => (skipsIdle.value = event.currentTarget.checked)}
          />
          Skip inactivity
        </label>
      </span>
    </div>
  )
}

function WindowChoice({ player, onChoose }: Pick<Props, 'player' | 'onChoose'>) {
  return (
    <label>
      Window{' '}
      <select
        value={player.chosen.value ?? ''}
        onChange={event => onChoose({ window: event.currentTarget.value || undefined })}
      >
        <option value="">Where something happens</option>
        {player.recording.windows.map(({ id, number }) => (
          <option key={id} value={id}>
            Window {number}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Stretches that are listed. */
const LISTED_MAX = 100
/** Pauses that are listed. Shorter ones are those of somebody who reads. */
const STILL_MS = 60_000

/** Lists what cannot be played and why, in words, with a way to the end of it. */
function Stretches({ player, onSeek }: { readonly player: Player; readonly onSeek: (at: number) => void }) {
  const { windows } = player.recording
  const named = windows.flatMap(window =>
    window.stretches
      .filter(({ kind, from, to }) => kind !== 'played' && (kind !== 'still' || to - from > STILL_MS))
      .map(stretch => ({ window, stretch })),
  )
  if (named.length === 0) return null
  return (
    <details class="stretches">
      <summary>
        {named.length === 1 ? '1 part' : `${named.length} parts`} of the recording without a picture, or with a doubtful
        one
      </summary>
      <ul>
        {named.slice(0, LISTED_MAX).map(({ window, stretch }) => (
          <li key={`${window.id} ${stretch.from} ${stretch.kind}`}>
            <span class={`tag stretch-tag ${stretch.kind}`}>{STRETCH_NAMES[stretch.kind]}</span>
            {windows.length > 1 && `Window ${window.number}: `}
            {explain(stretch)}{' '}
            <button type="button" class="plain" onClick={() => onSeek(stretch.to)}>
              Go to {clockTime(stretch.to)}
            </button>
          </li>
        ))}
      </ul>
    </details>
  )
}

/** Actions of the keys of the player. */
interface PlayerKeys {
  readonly toggle: () => void
  readonly step: (direction: -1 | 1) => void
  readonly error: (direction: -1 | 1) => void
}

const TAKES_SPACE = 'button, a, summary, input'

/**
 * Runs actions on keys: space plays and pauses, arrows seek, `e` and `E` go to the next and the previous error. A key that the
 * element with the focus has a meaning for keeps it.
 */
function usePlayerKeys(keys: PlayerKeys): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!isForShortcuts(event)) return
      const { target, key } = event
      if (key === ' ' && target instanceof HTMLElement && target.matches(TAKES_SPACE)) return
      const action = {
        ' ': keys.toggle,
        ArrowLeft: () => keys.step(-1),
        ArrowRight: () => keys.step(1),
        e: () => keys.error(1),
        E: () => keys.error(-1),
      }[key]
      if (action === undefined) return
      event.preventDefault()
      action()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  })
}
