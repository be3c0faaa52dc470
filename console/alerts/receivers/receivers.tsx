import { useState } from 'preact/hooks'
import type { AlertReceiver, Alerts } from '../../api/generated/client.ts'
import { ChangeForm, Field, NewSecret } from '../../ui/changes.tsx'
import { Notice } from '../../ui/states.tsx'
import { changeAlerts, type ReadAlerts } from '../replace-alerts.ts'
import { ReceiverCard } from './receiver-card.tsx'
import {
  CHANNELS,
  type Channel,
  type Signature,
  SignatureField,
  TARGETS,
  targetOf,
  textIn,
} from './receiver-fields.tsx'

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

function NewReceiver(props: { readonly read: ReadAlerts; readonly onAdded: (name: string, answer: Alerts) => void }) {
  const [channel, setChannel] = useState<Channel>('webhook')
  return (
    <details>
      <summary>Add a receiver</summary>
      <ChangeForm
        submit="Add receiver"
        change={async (fields, signal) => {
          const name = textIn(fields, 'name')
          const signature = textIn(fields, 'signature') as Signature
          const added = {
            ...{ name, channel, ...targetOf(channel, textIn(fields, 'target')) },
            ...(channel === 'webhook' && { signature }),
          }
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
        {channel === 'webhook' && <SignatureField />}
      </ChangeForm>
    </details>
  )
}
