import { signal } from '@preact/signals'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { SECOND_MS } from '../../schemas/units.ts'
import { refresh } from '../state/load.ts'
import { changeQuery, place } from '../state/router.ts'
import { CHOICES, describeRange, rangeOf, type TimeRange, zoneText } from '../state/time-range.ts'
import { parseTyped } from '../state/typed-range.ts'

/** Shows the time between two moments in Unix ms, to the second, on this page and those that are opened from it. */
export function zoomTo(fromMs: number, toMs: number): void {
  const iso = (seconds: number) => new Date(seconds * SECOND_MS).toISOString()
  const from = Math.floor(fromMs / SECOND_MS)
  chooseRange({ from: iso(from), to: iso(Math.max(from + 1, Math.ceil(toMs / SECOND_MS))) })
}

/** Shows a range on this page, and on those that are opened from it. */
export function chooseRange({ from, to }: TimeRange): void {
  changeQuery({ from, to })
}

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
        {isOpen && <Choices range={range} chosen={close} />}
      </div>
    </div>
  )
}

/** Space between the panel and what is around it, in pixels. */
const GAP = 4

function placeBelow(panel: HTMLElement, button: HTMLElement): void {
  const { left, bottom } = button.getBoundingClientRect()
  const most = document.documentElement.clientWidth - panel.offsetWidth - GAP
  panel.style.left = `${Math.max(GAP, Math.min(left, most))}px`
  panel.style.top = `${bottom + GAP}px`
}

function Choices({ range, chosen }: { readonly range: TimeRange; readonly chosen: () => void }) {
  const choose = (next: TimeRange) => {
    chooseRange(next)
    chosen()
  }
  return (
    <>
      <ul class="choices">
        {CHOICES.map(([from, name]) => (
          <li key={from}>
            <button
              type="button"
              class="plain"
              aria-current={range.from === from ? 'true' : undefined}
              onClick={() => choose({ from })}
            >
              {name}
            </button>
          </li>
        ))}
      </ul>
      <Typed range={range} choose={choose} />
    </>
  )
}

const EXAMPLE = 'yesterday 14:00 – 14:10'

function Typed({ range, choose }: { readonly range: TimeRange; readonly choose: (range: TimeRange) => void }) {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const [text, setText] = useState(describeRange(range))
  const [isWrong, setWrong] = useState(false)
  useEffect(() => input.current?.select(), [])
  const apply = () => {
    const read = parseTyped(text)
    setWrong(read === undefined)
    if (read !== undefined) choose(read)
  }
  return (
    <div class="field">
      <label for={id}>From and to</label>
      <div class="joined">
        <input
          ref={input}
          id={id}
          type="text"
          value={text}
          placeholder={EXAMPLE}
          autocomplete="off"
          spellcheck={false}
          maxLength={100}
          aria-describedby={`${id}-help`}
          {...(isWrong && { 'aria-invalid': true })}
          onInput={event => setText(event.currentTarget.value)}
          onKeyDown={event => {
            if (event.key !== 'Enter') return
            // The button to which the focus returns would be pressed.
            event.preventDefault()
            apply()
          }}
        />
        <button type="button" onClick={apply}>
          Apply
        </button>
      </div>
      <small id={`${id}-help`} class={isWrong ? 'fault' : 'quiet'} role={isWrong ? 'status' : undefined}>
        {isWrong ? `This is not a time before now. Write “${EXAMPLE}”, ` : `“${EXAMPLE}”, `}“last 3 h”, “2026-11-30” or
        “Nov 30 08:00 – now”. Times are of {zoneText()}.
      </small>
    </div>
  )
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
