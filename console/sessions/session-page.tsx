import { readSession, type Session, type SessionDevice } from '../api/generated/client.ts'
import { counted, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { Story } from './story.tsx'

/** A session: its user and devices, and everything of it in the order of time. */
export function SessionPage({ id }: { readonly id: string }) {
  const loaded = useLoad(id, signal => readSession({ sessionId: id }, { signal }))
  return (
    <>
      <Title text={loaded.value?.session.identity?.identifier ?? 'Session'} quiet={id} />
      <Shown loaded={loaded} what="the session">
        {({ session }) => (
          <>
            <Facts>
              <Fact name="First seen">
                <Time iso={session.firstSeenAt} exact />
              </Fact>
              <Fact name="Last seen">
                <Time iso={session.lastSeenAt} exact />
              </Fact>
              <Fact name="Devices">{formatCount(session.deviceCount)}</Fact>
              <Fact name="Logs">
                <a href={addressOf('logs', { session: id, last: '7d' })}>Log records of the session</a>
              </Fact>
            </Facts>
            <Story session={session} />
            {session.devices.length > 0 && <Devices session={session} />}
          </>
        )}
      </Shown>
    </>
  )
}

const DEVICE_COLUMNS: readonly Column<SessionDevice>[] = [
  {
    head: 'Device',
    cell: ({ deviceId, visitorId, fpHash }) => (
      <>
        <span class="mono">{deviceId ?? 'unnamed'}</span>
        <span class="message">
          {visitorId && `visitor ${visitorId} `}
          {fpHash && `fingerprint ${fpHash}`}
        </span>
      </>
    ),
  },
  { head: 'Heartbeats', isNumber: true, cell: ({ heartbeatCount }) => formatCount(heartbeatCount) },
  { head: 'First', cell: ({ firstHeartbeatAt }) => <Time iso={firstHeartbeatAt} exact /> },
  { head: 'Last', cell: ({ lastHeartbeatAt }) => <Time iso={lastHeartbeatAt} exact /> },
]

/** The devices that have sent heartbeats. */
function Devices({ session }: { readonly session: Session }) {
  const { devices, deviceCount } = session
  return (
    <section>
      <h2>Devices</h2>
      <DataTable caption="Devices of the session" columns={DEVICE_COLUMNS} rows={devices} keyOf={(_device, i) => i} />
      {deviceCount > devices.length && <p class="quiet">{counted(deviceCount, 'device')} in all.</p>}
    </section>
  )
}
