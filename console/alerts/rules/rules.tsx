import { useEffect, useRef, useState } from 'preact/hooks'
import type { AlertRule, Alerts } from '../../api/generated/client.ts'
import { addressOf, changeQuery, place } from '../../state/router.ts'
import { ChangeFault, Confirmed, useAction } from '../../ui/changes.tsx'
import { Time } from '../../ui/text.tsx'
import { KINDS } from '../kinds.ts'
import { changeAlerts, type ReadAlerts } from '../replace-alerts.ts'
import { RuleEditor } from './rule-editor.tsx'
import { conditionWords, measureWords } from './rule-words.ts'
import { type NamedSurface, useSurfaces } from './suggestions.ts'

const ALERTS = 'settings/alerts'

/** The rules, in the order in which they are asked. */
export function Rules({ read }: { readonly read: ReadAlerts }) {
  const { rules } = read.alerts
  const surfaces = useSurfaces()
  const [moved, setMoved] = useState<string>()
  const saved = place.value.query.get('saved')
  return (
    <section>
      <h3>Rules</h3>
      <p class="quiet">A receiver is called once for an event, by the first rule that matches and calls it.</p>
      <p>
        <a class="button" href={addressOf(ALERTS, { new: 'rule' })}>
          Add a rule
        </a>
      </p>
      {rules.length === 0 && <p>There is no rule: nothing is sent.</p>}
      <ol class="cards" aria-label="Rules">
        {rules.map((rule, index) => (
          <RuleCard
            key={rule.name}
            {...{ read, rule, index, surfaces }}
            isArrived={saved === rule.name}
            onMoved={place => setMoved(`${rule.name} is rule ${place} of ${rules.length}`)}
          />
        ))}
      </ol>
      <p role="status" class="hidden">
        {moved}
      </p>
    </section>
  )
}

interface CardProps {
  readonly read: ReadAlerts
  readonly rule: AlertRule
  readonly index: number
  readonly surfaces: readonly NamedSurface[]
  /** Whether it was saved just now: it gets the focus. */
  readonly isArrived: boolean
  readonly onMoved: (place: number) => void
}

function RuleCard(props: CardProps) {
  const { read, rule, index, surfaces, isArrived } = props
  const edit = useRef<HTMLAnchorElement>(null)
  useEffect(() => {
    if (isArrived) edit.current?.focus()
  }, [])
  return (
    <li>
      <div class="card-head">
        <h4>{rule.name}</h4>
        <span class="quiet">calls {rule.receivers?.join(', ') ?? 'every receiver'}</span>
        <span class="card-actions">
          <a ref={edit} class="button" href={addressOf(ALERTS, { rule: rule.name })}>
            Edit<span class="hidden"> {rule.name}</span>
          </a>
          <a class="button" href={addressOf(ALERTS, { copy: rule.name })}>
            Copy<span class="hidden"> {rule.name}</span>
          </a>
          <Move {...props} by={-1} label="Up" />
          <Move {...props} by={1} label="Down" />
          <Confirmed
            label="Delete"
            what={rule.name}
            title={`Delete ${rule.name}?`}
            word="delete"
            change={signal =>
              changeAlerts(read, { rules: kept => kept.filter(({ name }) => name !== rule.name) }, signal)
            }
            onDone={read.again}
          >
            <p>What it calls for calls no one any more, unless another rule does.</p>
          </Confirmed>
        </span>
      </div>
      <ul class="when" aria-label={`What ${rule.name} calls for, rule ${index + 1}`}>
        {rule.kinds.map(kind => {
          const { name, measure } = KINDS[kind]
          const words = measure && measureWords(rule, measure)
          return (
            <li key={kind}>
              {name}
              {words && <span class="quiet">: {words}</span>}
            </li>
          )
        })}
      </ul>
      <p class="quiet">{conditionWords(rule, surfaces).join(' ')}</p>
      <Failing of={read.alerts.failing?.filter(failing => failing.rule === rule.name) ?? []} />
    </li>
  )
}

/** States why a rule cannot be measured at the moment. */
function Failing({ of }: { readonly of: NonNullable<Alerts['failing']> }) {
  return (
    <>
      {of.map(({ kind, since, reason }) => (
        <p key={kind} role="status" class="fault">
          Not measured since <Time iso={since} exact />: {reason}
        </p>
      ))}
    </>
  )
}

/** A button that moves a rule by one place. It keeps the focus. */
function Move(props: CardProps & { readonly by: 1 | -1; readonly label: string }) {
  const { read, rule, index, by, label, onMoved } = props
  const action = useAction()
  const button = useRef<HTMLButtonElement>(null)
  const to = index + by
  const isLast = to < 0 || to >= read.alerts.rules.length
  const move = async () => {
    if (isLast || action.isBusy) return
    const rules = (kept: readonly AlertRule[]) => kept.with(index, kept[to] ?? rule).with(to, rule)
    if (!(await action.run(signal => changeAlerts(read, { rules }, signal)))) return
    read.again()
    onMoved(to + 1)
  }
  // The card is put to another place of the document, which takes the focus from its buttons.
  const hadFocus = useRef(false)
  useEffect(() => {
    if (hadFocus.current) button.current?.focus()
  }, [index])
  return (
    <>
      <button
        ref={button}
        type="button"
        aria-disabled={isLast || action.isBusy}
        onFocus={() => {
          hadFocus.current = true
        }}
        onBlur={event => {
          // Without another element, the focus was taken by a move.
          if (event.relatedTarget !== null) hadFocus.current = false
        }}
        onClick={() => void move()}
      >
        {label}
        <span class="hidden"> {rule.name}</span>
      </button>
      <ChangeFault fault={action.fault} />
    </>
  )
}

/** The form of the rule that the address names, a copy of it, or a new one. Undefined if it names none. */
export function openedRule(read: ReadAlerts) {
  const { query } = place.value
  const [name, copied] = [query.get('rule'), query.get('copy')]
  if (name === null && copied === null && query.get('new') !== 'rule') return undefined
  const found = read.alerts.rules.find(rule => rule.name === (name ?? copied))
  const from = copied === null ? found : found && { ...found, name: copyName(copied, read) }
  const onDone = (saved: string | undefined) => {
    if (saved !== undefined) read.again()
    changeQuery({ rule: undefined, copy: undefined, new: undefined, saved: saved ?? name ?? undefined })
  }
  return (
    <section>
      <h2>{name === null ? 'New rule' : `Rule: ${name}`}</h2>
      <RuleEditor key={`${name} ${copied}`} read={read} name={name ?? undefined} from={from} onDone={onDone} />
    </section>
  )
}

function copyName(name: string, { alerts }: ReadAlerts): string {
  const isTaken = (text: string) => alerts.rules.some(rule => rule.name === text)
  for (let i = 1; ; i++) {
    const text = i === 1 ? `${name}, copy` : `${name}, copy ${i}`
    if (!isTaken(text)) return text
  }
}
