import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { type Fault, faultOf } from '../api/client.ts'
import { Copy } from './text.tsx'

const FORBIDDEN = 403

/** States why a change could not be made. */
export function ChangeFault({ fault }: { readonly fault: Fault | undefined }) {
  if (fault === undefined) return null
  return (
    <p role="alert" class="fault">
      {fault.status === FORBIDDEN ? 'You are not permitted to do this' : 'This could not be done'}: {fault.message}.
    </p>
  )
}

/** A form that makes a change when it is submitted. The change gets the texts of its fields by their names. */
export function ChangeForm(props: {
  readonly submit: string
  /** Names the button for readers of the screen, where several have the same label. */
  readonly what?: string
  readonly class?: string
  readonly children: ComponentChildren
  readonly change: (fields: FormData, signal: AbortSignal) => Promise<unknown>
  readonly onDone?: () => void
}) {
  const action = useAction()
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    const form = event.currentTarget as HTMLFormElement
    const fields = new FormData(form)
    if (!(await action.run(signal => props.change(fields, signal)))) return
    form.reset()
    props.onDone?.()
  }
  return (
    <form class={props.class ?? 'change'} onSubmit={send} autocomplete="off">
      {props.children}
      <button type="submit" disabled={action.isBusy}>
        {props.submit}
        {props.what && <span class="hidden"> {props.what}</span>}
      </button>
      <ChangeFault fault={action.fault} />
    </form>
  )
}

/** A button for what cannot be undone. It asks in a dialog, where the user types a word before the change is made. */
export function Confirmed(props: {
  readonly label: string
  /** Names the button for readers of the screen, where several have the same label. */
  readonly what?: string
  readonly title: string
  readonly children: ComponentChildren
  /** The text that the user types. */
  readonly word: string
  /** Whether it does no harm. */
  readonly isSafe?: boolean
  readonly change: (signal: AbortSignal) => Promise<unknown>
  readonly onDone: () => void
}) {
  const { label, what, title, children, word, change, onDone } = props
  const dialog = useRef<HTMLDialogElement>(null)
  const [isOpen, setOpen] = useState(false)
  const close = () => {
    dialog.current?.close()
    setOpen(false)
  }
  return (
    <>
      <button
        type="button"
        class={props.isSafe ? undefined : 'danger'}
        onClick={() => {
          setOpen(true)
          dialog.current?.showModal()
        }}
      >
        {label}
        {what && <span class="hidden"> {what}</span>}
      </button>
      <dialog ref={dialog} aria-label={title} onClose={() => setOpen(false)}>
        {isOpen && (
          <Question
            {...{ title, word, label, change, close }}
            onDone={() => {
              close()
              onDone()
            }}
          >
            {children}
          </Question>
        )}
      </dialog>
    </>
  )
}

function Question(props: {
  readonly title: string
  readonly word: string
  readonly label: string
  readonly children: ComponentChildren
  readonly change: (signal: AbortSignal) => Promise<unknown>
  readonly close: () => void
  readonly onDone: () => void
}) {
  const { title, word, label, children, change, close, onDone } = props
  const action: Action = useAction()
  const [typed, setTyped] = useState('')
  const id = useId()
  const send = async (event: Event) => {
    event.preventDefault()
    if (typed === word && (await action.run(change))) onDone()
  }
  return (
    <form onSubmit={send} autocomplete="off">
      <h2>{title}</h2>
      <div>{children}</div>
      <p class="typed">
        <label for={id}>
          Type <strong>{word}</strong> to confirm
        </label>
        <input
          id={id}
          type="text"
          value={typed}
          spellcheck={false}
          onInput={event => setTyped(event.currentTarget.value)}
        />
      </p>
      <ChangeFault fault={action.fault} />
      <p class="panel-links">
        <button type="submit" class="danger" disabled={typed !== word || action.isBusy}>
          {label}
        </button>
        <button type="button" onClick={close}>
          Cancel
        </button>
      </p>
    </form>
  )
}

/** A field of a form. */
export function Field(props: {
  readonly name: string
  readonly label: string
  readonly value?: string
  readonly type?: 'text' | 'number'
  readonly isRequired?: boolean
  readonly hint?: string
}) {
  const id = useId()
  const shared = {
    id,
    name: props.name,
    defaultValue: props.value ?? '',
    required: props.isRequired ?? false,
    ...(props.hint && { 'aria-describedby': `${id}-hint` }),
  }
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.type === 'number' ? (
        <input type="number" min={1} {...shared} />
      ) : (
        <input type="text" spellcheck={false} {...shared} />
      )}
      {props.hint && (
        <small id={`${id}-hint`} class="quiet">
          {props.hint}
        </small>
      )}
    </div>
  )
}

/** A secret that no other response contains, with a button that copies it. */
export function NewSecret(props: { readonly secret: string; readonly what: string; readonly onDone: () => void }) {
  return (
    <section class="notice" role="alert">
      <h3>{props.what}</h3>
      <p>This is shown once. Keep it now: it cannot be read again.</p>
      <p>
        <code class="secret">{props.secret}</code>
      </p>
      <p class="panel-links">
        <Copy text={props.secret} class="" />
        <button type="button" onClick={props.onDone}>
          I have kept it
        </button>
      </p>
    </section>
  )
}

/** A change that the user makes. Its requests are not repeated by themselves: the user decides that. */
interface Action {
  readonly isBusy: boolean
  /** Why the last change could not be made. */
  readonly fault: Fault | undefined
  /** Makes a change. Resolves with whether it was made. */
  readonly run: (change: (signal: AbortSignal) => Promise<unknown>) => Promise<boolean>
}

/** Makes changes, one at a time. A change is abandoned when its page is left. */
export function useAction(): Action {
  const [fault, setFault] = useState<Fault>()
  const [isBusy, setBusy] = useState(false)
  const left = useRef(new AbortController())
  useEffect(() => () => left.current.abort(), [])
  const run: Action['run'] = async change => {
    setBusy(true)
    setFault(undefined)
    try {
      await change(left.current.signal)
      return true
    } catch (error) {
      if (!left.current.signal.aborted) setFault(faultOf(error))
      return false
    } finally {
      if (!left.current.signal.aborted) setBusy(false)
    }
  }
  return { isBusy, fault, run }
}
