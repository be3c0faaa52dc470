import { type DeliveryAttempts, listDeliveries } from '../../api/generated/client.ts'
import { useLoad } from '../../state/load.ts'
import { given, place } from '../../state/router.ts'
import { ChoiceFilter, Filters } from '../../ui/filters.tsx'
import { Shown } from '../../ui/states.tsx'
import { Time } from '../../ui/text.tsx'
import { addressOfDelivery, attemptWords, kindsOf, latestOf, STATES, StateTag, until } from './words.tsx'

const SHOWN = 50
const READ = 200
/** Attempts among which those of a state are looked for: all that are kept. */
const READ_OF_STATE = 1_000

/** The last deliveries, each with its state, of one receiver or all. */
export function Deliveries({ receivers }: { readonly receivers: readonly string[] }) {
  const { query } = place.value
  const state = query.get('state') ?? ''
  const limit = state === '' ? READ : READ_OF_STATE
  const loaded = useLoad(`deliveries ${query.get('receiver')} ${limit}`, signal =>
    listDeliveries({ limit, ...given(query, 'receiver') }, { signal }),
  )
  return (
    <section>
      <h3>Deliveries</h3>
      <Filters>
        <ChoiceFilter
          name="receiver"
          label="Receiver"
          options={[['', 'Any'], ...receivers.map(name => [name, name] as const)]}
          isOpen
        />
        <ChoiceFilter
          name="state"
          label="State"
          options={[['', 'Any'], ...Object.entries(STATES).map(([value, { name }]) => [value, name] as const)]}
        />
      </Filters>
      <Shown loaded={loaded} what="the deliveries">
        {answer => {
          const shown = latestOf(answer).filter(attempt => state === '' || attempt.state === state)
          return (
            <>
              {shown.length === 0 && (
                <p class="quiet">
                  {query.has('receiver') || state ? 'No delivery is like that.' : 'Nothing was sent yet.'}
                </p>
              )}
              <ul class="entries" aria-label="Deliveries">
                {shown.slice(0, SHOWN).map(attempt => (
                  <Delivery key={attempt.deliveryId} of={attempt} />
                ))}
              </ul>
              {shown.length > SHOWN && <p class="quiet">These are the latest {SHOWN}. There are more.</p>}
            </>
          )
        }}
      </Shown>
    </section>
  )
}

function Delivery({ of: attempt }: { readonly of: DeliveryAttempts['attempts'][number] }) {
  return (
    <li>
      <div class="entry-head">
        <StateTag state={attempt.state} />
        <a data-row href={addressOfDelivery(attempt.deliveryId)}>
          {kindsOf(attempt.events)}
        </a>
        <span class="quiet">
          to {attempt.receiverName} by {attempt.ruleName}, <Time iso={attempt.at} />
        </span>
      </div>
      {attempt.state !== 'delivered' && (
        <div class="quiet">
          {attemptWords(attempt)}
          {attempt.nextAttemptAt && ` The next one is in ${until(attempt.nextAttemptAt)}.`}
        </div>
      )}
    </li>
  )
}
