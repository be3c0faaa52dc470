import { type DeliveryAttempt, listDeliveries } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { Shown } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'
import { nameOfKind } from './kinds.ts'

const ATTEMPTS_SHOWN = 50
const EVENTS_SHOWN = 3

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
              {nameOfKind(type)}
            </a>
          ) : (
            <span key={id}>{nameOfKind(type)}</span>
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
export function Deliveries() {
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
