import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { chooseRange } from '../state/choose-range.ts'
import { CHOICES, describeRange, type TimeRange, zoneText } from '../state/time-range.ts'
import { parseTyped } from '../state/typed-range.ts'

/** Time ranges to choose from, and a field in which one is typed. */
export function TimeChoices({ range, chosen }: { readonly range: TimeRange; readonly chosen: () => void }) {
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
