import { signal } from '@preact/signals'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { SECOND_MS } from '../../schemas/units.ts'
import { refresh } from '../state/load.ts'
import { place } from '../state/router.ts'
import { describeRange, rangeOf, type TimeRange } from '../state/time-range.ts'
import { Later } from './later.tsx'

/** The time range of the page, chosen or typed, and how often the page is read again. */
export function TimeFilter(props: {
  readonly label?: string
  /** The range of a page whose address names none. */
  readonly otherwise?: TimeRange
}) {
  const { label = 'Time', otherwise } = props
  const range = rangeOf(place.value.query, otherwise)
  const id = useId()
  const button = useRef<HTMLButtonElement>(null)
  const panel = useRef<HTMLDivElement>(null)
  const [isOpen, setOpen] = useState(false)
  const close = () => {
    panel.current?.hidePopover()
    button.current?.focus()
  }
  return (
    <div class="field wide">
      <span id={`${id}-label`}>{label}</span>
      <div class="joined">
        <button
          type="button"
          ref={button}
          id={`${id}-button`}
          class="chooser"
          popovertarget={`${id}-panel`}
          aria-labelledby={`${id}-label ${id}-button`}
        >
          {describeRange(range)}
        </button>
        <Refresh />
      </div>
      <div
        ref={panel}
        id={`${id}-panel`}
        popover="auto"
        class="time-panel"
        role="dialog"
        aria-labelledby={`${id}-label`}
        onToggle={event => {
          setOpen(event.newState === 'open')
          if (event.newState === 'open' && button.current) placeBelow(event.currentTarget, button.current)
        }}
      >
        {isOpen && <Later load={loadChoices} props={{ range, chosen: close }} />}
      </div>
    </div>
  )
}

const loadChoices = async () => (await import('./time-choices.tsx')).TimeChoices

/** Space between the panel and what is around it, in pixels. */
const GAP = 4

function placeBelow(panel: HTMLElement, button: HTMLElement): void {
  const { left, bottom } = button.getBoundingClientRect()
  const most = document.documentElement.clientWidth - panel.offsetWidth - GAP
  panel.style.left = `${Math.max(GAP, Math.min(left, most))}px`
  panel.style.top = `${bottom + GAP}px`
}

/** Seconds between two readings of the page by itself. 0: never. It holds for all pages until the console is left. */
const interval = signal(0)
const INTERVALS = [
  [0, 'Auto: off'],
  [5, 'Auto: 5 s'],
  [30, 'Auto: 30 s'],
  [300, 'Auto: 5 min'],
] as const

function Refresh() {
  const seconds = interval.value
  useEffect(() => {
    if (seconds === 0) return
    const timer = setInterval(() => document.hidden || refresh(), seconds * SECOND_MS)
    return () => clearInterval(timer)
  }, [seconds])
  return (
    <>
      <button type="button" onClick={refresh}>
        Refresh
      </button>
      <select
        aria-label="Refresh by itself"
        value={seconds}
        onChange={event => {
          interval.value = Number(event.currentTarget.value)
        }}
      >
        {INTERVALS.map(([value, name]) => (
          <option key={value} value={value}>
            {name}
          </option>
        ))}
      </select>
    </>
  )
}
