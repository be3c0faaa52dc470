import { HOUR_S } from '../../schemas/units.ts'
import { formatSeconds } from '../state/format.ts'
import type { Stretch, StretchKind } from './recording.ts'

const TIME = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const
const CLOCK = new Intl.DateTimeFormat(undefined, TIME)
const DATE_CLOCK = new Intl.DateTimeFormat(undefined, { ...TIME, month: 'short', day: 'numeric' })

/** Formats a time of a recording: the time of day for today, else with the date. */
export function clockTime(ms: number, now = Date.now()): string {
  const isToday = new Date(ms).toDateString() === new Date(now).toDateString()
  return (isToday ? CLOCK : DATE_CLOCK).format(ms)
}

/** Formats a time since the beginning: `1:02:03`. */
export function elapsed(ms: number): string {
  const seconds = Math.floor(Math.max(ms, 0) / 1_000)
  const [h, m, s] = [Math.floor(seconds / HOUR_S), Math.floor(seconds / 60) % 60, seconds % 60]
  const two = (value: number) => String(value).padStart(2, '0')
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}

/** Short names of the stretches that are named on the seek bar. */
export const STRETCH_NAMES: Readonly<Record<StretchKind, string>> = {
  played: 'Recorded',
  still: 'Nothing recorded',
  lost: 'Lost',
  blind: 'No snapshot yet',
  pictureless: 'No snapshot',
  doubtful: 'May differ',
}

/** Explains what there is to see of a stretch, and why. */
export function explain({ kind, from, to }: Stretch): string {
  const times = `${clockTime(from)} to ${clockTime(to)} (${formatSeconds((to - from) / 1_000)})`
  switch (kind) {
    case 'still':
      return `Nothing was recorded from ${times}: the page was idle, asleep or closed. The last picture before is shown.`
    case 'lost':
      return `The recording from ${times} never arrived. The last picture before is shown.`
    case 'blind':
      return `This window cannot be played before ${clockTime(to)}: its first full snapshot never arrived.`
    case 'pictureless':
      return 'There is no picture: no full snapshot of this window has arrived, and its other events only state changes.'
    case 'doubtful':
      return `Parts before are lost: until ${clockTime(to)}, the picture may differ from what the user saw.`
    case 'played':
      return `Recorded from ${times}.`
  }
}
