import { readAlerts } from '../api/generated/client.ts'
import { useLoad } from '../state/load.ts'
import { Shown } from '../ui/states.tsx'
import { Deliveries } from './deliveries/deliveries.tsx'
import { openedDelivery } from './deliveries/delivery.tsx'
import { Receivers } from './receivers/receivers.tsx'
import { openedRule, Rules } from './rules/rules.tsx'

/** Who is called when something needs people, by which rules, and what was sent. */
export function AlertsOfWorkspace() {
  const loaded = useLoad('alerts', signal => readAlerts({ signal }))
  return (
    <Shown loaded={loaded} what="receivers and rules">
      {alerts => {
        const read = { alerts, again: loaded.again }
        return (
          openedDelivery() ??
          openedRule(read) ?? (
            <section class="alerts">
              <h2>Alerts</h2>
              <Receivers read={read} />
              <Rules read={read} />
              <Deliveries receivers={alerts.receivers.map(({ name }) => name)} />
            </section>
          )
        )
      }}
    </Shown>
  )
}
