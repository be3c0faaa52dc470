import { listDeliveries } from '../../api/generated/client.ts'
import { useLoad } from '../../state/load.ts'
import { Time } from '../../ui/text.tsx'
import { addressOfDelivery, kindsOf, latestOf, StateTag } from './words.tsx'

const READ = 100
const SHOWN = 10
const FORBIDDEN = 403

/** To whom messages about a finding were sent. Absent if none was, or if this user may not see them. */
export function DeliveriesOfFinding({ id }: { readonly id: string }) {
  const { value, fault } = useLoad(`deliveries of ${id}`, signal =>
    listDeliveries({ findingId: id, limit: READ }, { signal }),
  )
  const sent = value === undefined ? [] : latestOf(value)
  const isFaulty = fault !== undefined && fault.status !== FORBIDDEN
  if (sent.length === 0 && !isFaulty) return null
  return (
    <section>
      <h2>Alerts</h2>
      {isFaulty && <p class="quiet">What was sent cannot be read: {fault.message}.</p>}
      <ul class="entries" aria-label="Sent to">
        {sent.slice(0, SHOWN).map(({ deliveryId, state, receiverName, ruleName, events, at }) => (
          <li key={deliveryId}>
            <div class="entry-head">
              <StateTag state={state} />
              <a data-row href={addressOfDelivery(deliveryId)}>
                {receiverName}
              </a>
              <span>{kindsOf(events.filter(({ findingId }) => findingId === id))}</span>
            </div>
            <div class="quiet">
              by {ruleName}, <Time iso={at} />
            </div>
          </li>
        ))}
      </ul>
      {sent.length > SHOWN && (
        <p class="quiet">
          These are the latest {SHOWN} of {sent.length}.
        </p>
      )}
    </section>
  )
}
