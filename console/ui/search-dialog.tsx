import type { RefObject } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { type Destination, destinationsOf } from '../state/destinations.ts'
import { go } from '../state/router.ts'

/** A field for any id or text, and the pages that it may mean. */
export function SearchDialog({ dialog }: { readonly dialog: RefObject<HTMLDialogElement | null> }) {
  const id = useId()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => input.current?.focus(), [])
  const found = destinationsOf(text)
  const current = Math.min(at, found.length - 1)
  const follow = (address: string | undefined) => {
    if (address === undefined) return
    dialog.current?.close()
    go(address)
    scrollTo(0, 0)
  }
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) setAt((current + step + found.length) % Math.max(found.length, 1))
    else if (event.key === 'Enter') follow(found[current]?.address)
    else return
    event.preventDefault()
  }
  return (
    <>
      <label for={`${id}-text`}>A trace, span, session, e-mail address, finding, version, or words</label>
      <input
        id={`${id}-text`}
        ref={input}
        type="text"
        role="combobox"
        autocomplete="off"
        spellcheck={false}
        maxLength={1_024}
        aria-expanded={found.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length > 0 ? `${id}-${current}` : undefined}
        value={text}
        onInput={event => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <Found id={id} found={found} current={current} point={setAt} follow={follow} />
    </>
  )
}

function Found(props: {
  readonly id: string
  readonly found: readonly Destination[]
  readonly current: number
  readonly point: (at: number) => void
  readonly follow: (address: string) => void
}) {
  const { id, found, current, point, follow } = props
  return (
    <div id={`${id}-list`} role="listbox" aria-label="Pages" class="destinations">
      {found.map(({ name, address }, i) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the field that has the focus takes the keys
        <div
          key={address}
          id={`${id}-${i}`}
          role="option"
          tabIndex={-1}
          aria-selected={i === current}
          onPointerMove={() => point(i)}
          onClick={() => follow(address)}
        >
          {name}
        </div>
      ))}
    </div>
  )
}
