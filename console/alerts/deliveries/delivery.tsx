import { useEffect } from 'preact/hooks'
import { type Delivery, readDelivery, replayDelivery } from '../../api/generated/client.ts'
import { useLoad } from '../../state/load.ts'
import { addressOf, place } from '../../state/router.ts'
import { ChangeForm } from '../../ui/changes.tsx'
import { Shown } from '../../ui/states.tsx'
import { Copy, Fact, Facts, Time } from '../../ui/text.tsx'
import { nameOfKind } from '../kinds.ts'
import { attemptWords, StateTag, until } from './words.tsx'

/** The delivery that the address names, or undefined if it names none. */
export function openedDelivery() {
  const id = place.value.query.get('delivery')
  return id === null ? undefined : <DeliveryDetails key={id} id={id} />
}

/** A delivery that is on its way is read again so soon. */
const ON_ITS_WAY_MS = 2_000

/** A delivery with its attempts and its message. */
function DeliveryDetails({ id }: { readonly id: string }) {
  const loaded = useLoad(`delivery ${id}`, signal => readDelivery({ deliveryId: id }, { signal }))
  const { value } = loaded
  const isOnItsWay = value?.state === 'waiting' && isDue(value.nextAttemptAt)
  useEffect(() => {
    if (!isOnItsWay || loaded.isLoading) return
    const timer = setTimeout(loaded.again, ON_ITS_WAY_MS)
    return () => clearTimeout(timer)
  }, [value, loaded.isLoading])
  return (
    <section class="alerts">
      <h2>Delivery</h2>
      <p>
        <a href={addressOf('settings/alerts')}>All deliveries</a>
      </p>
      <Shown loaded={loaded} what="the delivery">
        {delivery => (
          <>
            <DeliveryFacts of={delivery} />
            {delivery.state !== 'delivered' && delivery.events.length > 0 && (
              <ChangeForm
                submit={delivery.state === 'waiting' ? 'Send now' : 'Send again'}
                class="bare"
                change={(_, signal) => replayDelivery({ deliveryId: id, replayDeliveryRequest: {} }, { signal })}
                onDone={loaded.again}
              >
                {null}
              </ChangeForm>
            )}
            <Attempts of={delivery} />
            <Message of={delivery} />
          </>
        )}
      </Shown>
    </section>
  )
}

function isDue(nextAttemptAt: string | undefined): boolean {
  return nextAttemptAt === undefined || Date.parse(nextAttemptAt) - Date.now() < 2 * ON_ITS_WAY_MS
}

function DeliveryFacts({ of }: { readonly of: Delivery }) {
  const { deliveryId, state, receiverName, ruleName, nextAttemptAt } = of
  return (
    <Facts>
      <Fact name="State">
        <StateTag state={state} />
      </Fact>
      <Fact name="Receiver">{receiverName}</Fact>
      <Fact name="Rule">{ruleName}</Fact>
      {nextAttemptAt && <Fact name="Next attempt">in {until(nextAttemptAt)}</Fact>}
      <Fact name="webhook-id">
        <code>{deliveryId}</code>
      </Fact>
    </Facts>
  )
}

function Attempts({ of: { attempts } }: { readonly of: Delivery }) {
  return (
    <>
      <h3>Attempts</h3>
      {attempts.length === 0 && <p class="quiet">There was none yet.</p>}
      <ul class="entries" aria-label="Attempts">
        {attempts.map(attempt => (
          <li key={`${attempt.attempt} ${attempt.at}`}>
            <div class="entry-head">
              <Time iso={attempt.at} exact />
              <span>{attemptWords(attempt)}</span>
            </div>
            {attempt.answer && <div class="quiet">It answered: {attempt.answer}</div>}
          </li>
        ))}
      </ul>
    </>
  )
}

function Message({ of: { events } }: { readonly of: Delivery }) {
  return (
    <>
      <h3>Message</h3>
      {events.length === 0 && <p class="quiet">It is not kept any more, and cannot be sent again.</p>}
      {events.map(event => {
        const body = JSON.stringify(event, null, 2)
        const findingId = 'finding' in event.data ? event.data.finding.id : undefined
        return (
          <details key={event.data.id} open={events.length === 1}>
            <summary>{nameOfKind(event.type)}</summary>
            <p class="panel-links">
              {findingId && <a href={addressOf(`findings/${findingId}`)}>Finding</a>}
              <Copy text={body} what="body" />
            </p>
            <pre class="log-whole">{body}</pre>
          </details>
        )
      })}
    </>
  )
}
