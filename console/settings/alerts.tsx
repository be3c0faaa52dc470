import { useState } from 'preact/hooks'
import {
  type AlertReceiver,
  type Alerts,
  type DeliveryAttempt,
  listDeliveries,
  type ReplaceAlertsRequest,
  readAlerts,
  replaceAlerts,
  type TestedReceiver,
  testReceiver,
} from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { ChangeForm, Confirmed, Field, NewSecret } from '../ui/changes.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'

type RequestedReceiver = ReplaceAlertsRequest['receivers'][number]

const CHANNELS = {
  webhook: 'Webhook',
  slack: 'Slack',
  teams: 'Microsoft Teams',
  pagerduty: 'PagerDuty',
  email: 'E-mail',
} as const

const ATTEMPTS_SHOWN = 50
const EVENTS_SHOWN = 3

/** Who is called when findings need people, by which rules, and what was sent. */
export function AlertsOfWorkspace() {
  const loaded = useLoad('alerts', signal => readAlerts({ signal }))
  return (
    <section>
      <h2>Alerts</h2>
      <Shown loaded={loaded} what="the receivers">
        {alerts => (
          <>
            <NewReceiver alerts={alerts} changed={loaded.again} />
            {alerts.receivers.length === 0 && (
              <Notice
                title="No one is called yet"
                text="Add a receiver: new findings, and those that come back, call it."
              />
            )}
            <ul class="cards">
              {alerts.receivers.map(receiver => (
                <ReceiverCard key={receiver.id} alerts={alerts} receiver={receiver} changed={loaded.again} />
              ))}
            </ul>
            <h3>Rules</h3>
            <ul class="entries">
              {alerts.rules.map(rule => (
                <li key={rule.name}>
                  <div class="entry-head">
                    <strong>{rule.name}</strong>
                    <span class="quiet">calls {rule.receivers?.join(', ') ?? 'every receiver'}</span>
                  </div>
                  <div class="quiet">{conditionsOf(rule)}</div>
                </li>
              ))}
            </ul>
            <p class="quiet">
              <code>PUT /v3/alerts</code> and <code>penstock alerts replace</code> change them.
            </p>
          </>
        )}
      </Shown>
      <Deliveries />
    </section>
  )
}

/** Returns the body of a request that changes the receivers. Those that stay are named without their targets. */
function requestOf({ revision, rules, receivers }: Alerts, change: (kept: RequestedReceiver[]) => RequestedReceiver[]) {
  const kept = receivers.map(({ name, channel, disabled }) => ({ name, channel, disabled: disabled !== undefined }))
  return { replaceAlertsRequest: { revision, rules, receivers: change(kept) } as ReplaceAlertsRequest }
}

function targetOf(channel: RequestedReceiver['channel'], text: string): Partial<RequestedReceiver> {
  if (channel === 'pagerduty') return { routingKey: text }
  return channel === 'email' ? { to: text.split(/[\s,;]+/) } : { url: text }
}

function NewReceiver({ alerts, changed }: { readonly alerts: Alerts; readonly changed: () => void }) {
  const [created, setCreated] = useState<AlertReceiver>()
  return (
    <>
      {created?.secret && (
        <NewSecret
          secret={created.secret}
          what={`Secret of ${created.name}, by which it verifies webhooks`}
          onDone={() => setCreated(undefined)}
        />
      )}
      <details>
        <summary>Add a receiver</summary>
        <ChangeForm
          submit="Add receiver"
          change={async (fields, signal) => {
            const text = (field: string) => String(fields.get(field) ?? '').trim()
            const name = text('name')
            const channel = text('channel') as RequestedReceiver['channel']
            const added = { name, channel, ...targetOf(channel, text('target')) }
            const answer = await replaceAlerts(
              requestOf(alerts, kept => [...kept, added]),
              { signal },
            )
            setCreated(answer.receivers.find(receiver => receiver.name === name))
          }}
          onDone={changed}
        >
          <Field name="name" label="Name" isRequired />
          <label class="field">
            <span>Channel</span>
            <select name="channel">
              {Object.entries(CHANNELS).map(([channel, label]) => (
                <option key={channel} value={channel}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <Field
            name="target"
            label="Target"
            isRequired
            hint="The URL, the integration key of PagerDuty, or e-mail addresses with commas between them."
          />
        </ChangeForm>
      </details>
    </>
  )
}

function ReceiverCard(props: {
  readonly alerts: Alerts
  readonly receiver: AlertReceiver
  readonly changed: () => void
}) {
  const { alerts, receiver, changed } = props
  const { name, channel, address, createdAt, disabled } = receiver
  const [tested, setTested] = useState<TestedReceiver>()
  return (
    <li>
      <div class="card-head">
        <h3>{name}</h3>
        <span class="tag">{CHANNELS[channel]}</span> <code>{address}</code>
        <span class="quiet">
          added <Time iso={createdAt} />
        </span>
        <span class="card-actions">
          <ChangeForm
            submit="Send a test"
            class="bare"
            change={async (_, signal) =>
              setTested(await testReceiver({ testReceiverRequest: { receiver: name } }, { signal }))
            }
          >
            {null}
          </ChangeForm>
          <Confirmed
            label="Remove"
            what={name}
            title={`Remove ${name}?`}
            word={name}
            change={signal =>
              replaceAlerts(
                requestOf(withoutReceiver(alerts, name), kept => kept.filter(other => other.name !== name)),
                { signal },
              )
            }
            onDone={changed}
          >
            <p>Nothing is sent to it any more, and its secret is lost.</p>
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
    </li>
  )
}

/** Rules may name only receivers that there are. One that calls no other goes with its receiver. */
function withoutReceiver(alerts: Alerts, removed: string): Alerts {
  const rules = alerts.rules.flatMap(rule => {
    const receivers = rule.receivers?.filter(name => name !== removed)
    if (receivers?.length === 0) return []
    return [{ ...rule, ...(receivers && { receivers }) }]
  })
  return { ...alerts, rules }
}

/** Returns the kinds of events that a rule calls for, and its conditions. */
function conditionsOf({ kinds, surfaces, services, environments, types }: Alerts['rules'][number]): string {
  const values = [surfaces, services, environments, types].flatMap(some => some?.join(' or ') ?? [])
  return [kinds.join(', '), ...values].join('; ')
}

function Attempt({ of }: { readonly of: DeliveryAttempt }) {
  const { at, receiverName, events, result, status, reason, attempt, nextAttemptAt } = of
  return (
    <li>
      <div class="entry-head">
        <span class="tag">{result}</span>
        <strong>{receiverName}</strong>
        {events.slice(0, EVENTS_SHOWN).map(({ id, type, findingId }) =>
          findingId ? (
            <a key={id} href={addressOf(`findings/${findingId}`)}>
              {type}
            </a>
          ) : (
            <span key={id}>{type}</span>
          ),
        )}
        {events.length > EVENTS_SHOWN && <span>and {events.length - EVENTS_SHOWN} more</span>}
        <span class="quiet">
          <Time iso={at} />
        </span>
      </div>
      {result !== 'delivered' && (
        <div class="quiet">
          attempt {attempt}: {[status, reason].filter(word => word !== undefined).join(', ')}
          {nextAttemptAt && (
            <>
              , again <Time iso={nextAttemptAt} />
            </>
          )}
        </div>
      )}
    </li>
  )
}

/** The last attempts to send something. */
function Deliveries() {
  const loaded = useLoad('deliveries', signal => listDeliveries({}, { signal }))
  return (
    <>
      <h3>Deliveries</h3>
      <Shown loaded={loaded} what="the deliveries">
        {({ attempts }) => (
          <>
            {attempts.length === 0 && <p class="quiet">Nothing was sent yet.</p>}
            <ul class="entries">
              {attempts.slice(0, ATTEMPTS_SHOWN).map(attempt => (
                <Attempt key={`${attempt.deliveryId} ${attempt.attempt}`} of={attempt} />
              ))}
            </ul>
          </>
        )}
      </Shown>
    </>
  )
}
