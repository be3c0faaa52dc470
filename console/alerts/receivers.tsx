import { useState } from 'preact/hooks'
import {
  type AlertReceiver,
  type AlertRule,
  type Alerts,
  type TestedReceiver,
  testReceiver,
} from '../api/generated/client.ts'
import { ChangeForm, Confirmed, Field, NewSecret } from '../ui/changes.tsx'
import { Notice } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'
import { changeAlerts, type ReadAlerts, type RequestedReceiver } from './replace-alerts.ts'

type Channel = RequestedReceiver['channel']

const CHANNELS: Readonly<Record<Channel, string>> = {
  webhook: 'Webhook',
  slack: 'Slack',
  teams: 'Microsoft Teams',
  pagerduty: 'PagerDuty',
  email: 'E-mail',
}

const TARGETS: Readonly<Record<Channel, string>> = {
  webhook: 'URL',
  slack: 'URL of the incoming webhook',
  teams: 'URL of the workflow',
  pagerduty: 'Integration key of PagerDuty',
  email: 'E-mail addresses, with commas between them',
}

/** Where messages go: receivers can be added, tested, changed, disabled and removed. */
export function Receivers({ read }: { readonly read: ReadAlerts }) {
  const { receivers } = read.alerts
  const [created, setCreated] = useState<AlertReceiver>()
  const keep = (name: string) => (answer: Alerts) =>
    setCreated(answer.receivers.find(receiver => receiver.name === name && receiver.secret !== undefined))
  return (
    <section>
      <h3>Receivers</h3>
      {created?.secret && (
        <NewSecret
          secret={created.secret}
          what={`Secret of ${created.name}, by which it verifies webhooks`}
          onDone={() => setCreated(undefined)}
        />
      )}
      {receivers.length === 0 && (
        <Notice
          title="No one is called yet"
          text="Add a receiver: new findings, and those that come back, call it, unless you change the rules."
        />
      )}
      <ul class="cards" aria-label="Receivers">
        {receivers.map(receiver => (
          <ReceiverCard key={receiver.id} read={read} receiver={receiver} onChanged={keep(receiver.name)} />
        ))}
      </ul>
      <NewReceiver read={read} onAdded={(name, answer) => keep(name)(answer)} />
    </section>
  )
}

const textOf = (fields: FormData, field: string) => String(fields.get(field) ?? '').trim()

function targetOf(channel: Channel, text: string): Partial<RequestedReceiver> {
  if (channel === 'pagerduty') return { routingKey: text }
  return channel === 'email' ? { to: text.split(/[\s,;]+/).filter(Boolean) } : { url: text }
}

function NewReceiver(props: { readonly read: ReadAlerts; readonly onAdded: (name: string, answer: Alerts) => void }) {
  const [channel, setChannel] = useState<Channel>('webhook')
  return (
    <details>
      <summary>Add a receiver</summary>
      <ChangeForm
        submit="Add receiver"
        change={async (fields, signal) => {
          const name = textOf(fields, 'name')
          const added = { name, channel, ...targetOf(channel, textOf(fields, 'target')) }
          props.onAdded(name, await changeAlerts(props.read, { receivers: kept => [...kept, added] }, signal))
        }}
        onDone={props.read.again}
      >
        <Field name="name" label="Name" isRequired hint="It cannot be changed later." />
        <label class="field">
          <span>Channel</span>
          <select name="channel" value={channel} onChange={event => setChannel(event.currentTarget.value as Channel)}>
            {Object.entries(CHANNELS).map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <Field key={channel} name="target" label={TARGETS[channel]} isRequired />
      </ChangeForm>
    </details>
  )
}

interface ReceiverProps {
  readonly read: ReadAlerts
  readonly receiver: AlertReceiver
  readonly onChanged: (answer: Alerts) => void
}

function ReceiverCard(props: ReceiverProps) {
  const { read, receiver } = props
  const { name, channel, address, createdAt, disabled } = receiver
  const [tested, setTested] = useState<TestedReceiver>()
  return (
    <li>
      <div class="card-head">
        <h4>{name}</h4>
        <span class="tag">{CHANNELS[channel]}</span> <code>{address}</code>
        <span class="quiet">
          added <Time iso={createdAt} />
        </span>
        <span class="card-actions">
          <ChangeForm
            submit="Send a test"
            what={name}
            class="bare"
            change={async (_, signal) =>
              setTested(await testReceiver({ testReceiverRequest: { receiver: name } }, { signal }))
            }
          >
            {null}
          </ChangeForm>
          <ReceiverSwitch {...props} />
          <Confirmed
            label="Remove"
            what={name}
            title={`Remove ${name}?`}
            word={name}
            change={signal => changeAlerts(read, withoutReceiver(name), signal)}
            onDone={read.again}
          >
            <p>
              Nothing is sent to it any more, and its secret is lost. A rule that calls no other receiver is deleted
              too.
            </p>
          </Confirmed>
        </span>
      </div>
      {disabled && (
        <p role="status" class="fault">
          Disabled since <Time iso={disabled.at} />: {disabled.reason}
        </p>
      )}
      {tested && (
        <p role="status" class={tested.result === 'delivered' ? 'quiet' : 'fault'}>
          {tested.result === 'delivered'
            ? 'The test was delivered'
            : `The test was not delivered: ${tested.reason ?? ''}`}{' '}
          {tested.status !== undefined && `(status ${tested.status})`}
        </p>
      )}
      <ReceiverChanges {...props} />
    </li>
  )
}

/** Changes one receiver and leaves the others as they are. */
function changeOne({ read, receiver, onChanged }: ReceiverProps, change: Partial<RequestedReceiver>) {
  const receivers = (kept: readonly RequestedReceiver[]) =>
    kept.map(other => (other.name === receiver.name ? { ...other, ...change } : other))
  return async (signal: AbortSignal) => onChanged(await changeAlerts(read, { receivers }, signal))
}

function ReceiverSwitch(props: ReceiverProps) {
  const { read, receiver } = props
  const isDisabled = receiver.disabled !== undefined
  return (
    <ChangeForm
      submit={isDisabled ? 'Enable' : 'Disable'}
      what={receiver.name}
      class="bare"
      change={(_, signal) => changeOne(props, { disabled: !isDisabled })(signal)}
      onDone={read.again}
    >
      {null}
    </ChangeForm>
  )
}

/** The target of a receiver, and the secret of a webhook. */
function ReceiverChanges(props: ReceiverProps) {
  const { read, receiver } = props
  const { name, channel } = receiver
  return (
    <details>
      <summary>
        Change{channel === 'webhook' ? ' target or secret' : ' target'}
        <span class="hidden"> of {name}</span>
      </summary>
      <ChangeForm
        submit="Change target"
        change={(fields, signal) => changeOne(props, targetOf(channel, textOf(fields, 'target')))(signal)}
        onDone={read.again}
      >
        <Field name="target" label={TARGETS[channel]} isRequired hint={`So far: ${receiver.address}`} />
      </ChangeForm>
      {channel === 'webhook' && (
        <ChangeForm
          submit="Make a new secret"
          change={(_, signal) => changeOne(props, { rotateSecret: true })(signal)}
          onDone={read.again}
        >
          <p class="quiet">Messages are signed with the new secret and with this one, until the next is made.</p>
        </ChangeForm>
      )}
    </details>
  )
}

/** Rules may name only receivers that there are. One that calls no other goes with its receiver. */
function withoutReceiver(removed: string) {
  return {
    receivers: (kept: readonly RequestedReceiver[]) => kept.filter(({ name }) => name !== removed),
    rules: (kept: readonly AlertRule[]) =>
      kept.flatMap(rule => {
        const receivers = rule.receivers?.filter(name => name !== removed)
        if (receivers?.length === 0) return []
        return [{ ...rule, ...(receivers && { receivers }) }]
      }),
  }
}
