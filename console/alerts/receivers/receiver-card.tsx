import { useState } from 'preact/hooks'
import {
  type AlertReceiver,
  type AlertRule,
  type Alerts,
  type TestedReceiver,
  testReceiver,
} from '../../api/generated/client.ts'
import { ChangeForm, Confirmed, Field } from '../../ui/changes.tsx'
import { Copy, Time } from '../../ui/text.tsx'
import { changeAlerts, type ReadAlerts, type RequestedReceiver } from '../replace-alerts.ts'
import { CHANNELS, type Signature, SignatureField, TARGETS, targetOf, textIn } from './receiver-fields.tsx'

interface ReceiverProps {
  readonly read: ReadAlerts
  readonly receiver: AlertReceiver
  readonly onChanged: (answer: Alerts) => void
}

/** A receiver, and what can be done with it. */
export function ReceiverCard(props: ReceiverProps) {
  const { read, receiver } = props
  const { name, channel, address, createdAt, disabled, publicKey } = receiver
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
      {tested && <TestResult of={tested} />}
      {publicKey && (
        <p>
          Verified with <code class="secret">{publicKey}</code> <Copy text={publicKey} what="key" />
        </p>
      )}
      <ReceiverChanges {...props} />
    </li>
  )
}

function TestResult({ of: { result, reason, status } }: { readonly of: TestedReceiver }) {
  const isDelivered = result === 'delivered'
  return (
    <p role="status" class={isDelivered ? 'quiet' : 'fault'}>
      {isDelivered ? 'The test was delivered' : `The test was not delivered: ${reason ?? ''}`}{' '}
      {status !== undefined && `(status ${status})`}
    </p>
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
  const { name, channel, publicKey } = receiver
  const signature: Signature = publicKey === undefined ? 'hmac' : 'ed25519'
  return (
    <details>
      <summary>
        Change<span class="hidden"> {name}</span>
      </summary>
      <ChangeForm
        submit="Change target"
        change={(fields, signal) => changeOne(props, targetOf(channel, textIn(fields, 'target')))(signal)}
        onDone={read.again}
      >
        <Field name="target" label={TARGETS[channel]} isRequired hint={`So far: ${receiver.address}`} />
      </ChangeForm>
      {channel === 'webhook' && (
        <ChangeForm
          key={signature}
          submit={signature === 'hmac' ? 'Make a new secret' : 'Make a new key'}
          change={(fields, signal) => {
            const wanted = textIn(fields, 'signature') as Signature
            return changeOne(props, { rotateSecret: true, signature: wanted })(signal)
          }}
          onDone={read.again}
        >
          <p class="quiet">Messages are signed with the new one and with that of now, until the next is made.</p>
          <SignatureField now={signature} />
        </ChangeForm>
      )}
      <ActionLinks {...props} />
    </details>
  )
}

/** Whether messages have links by which anyone who reads them works on findings. */
function ActionLinks(props: ReceiverProps) {
  const { read, receiver } = props
  const hasLinks = receiver.actions !== false
  return (
    <ChangeForm
      submit={hasLinks ? 'Leave these links out' : 'Add these links'}
      change={(_, signal) => changeOne(props, { actions: !hasLinks })(signal)}
      onDone={read.again}
    >
      <p class="quiet">
        {hasLinks
          ? 'Messages have links by which anyone who reads them can acknowledge, resolve or ignore a finding, without signing in.'
          : 'Messages have no links that acknowledge, resolve or ignore a finding.'}
      </p>
    </ChangeForm>
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
