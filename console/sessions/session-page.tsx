import { readSession, type Session } from '../api/generated/client.ts'
import { counted, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
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

/** The devices that have sent heartbeats. */
function Devices({ session }: { readonly session: Session }) {
  const { devices, deviceCount } = session
  return (
    <section>
      <h2>Devices</h2>
      <table class="list">
        <caption class="hidden">Devices of the session</caption>
        <thead>
          <tr>
            <th scope="col">Device</th>
            <th scope="col" class="number">
              Heartbeats
            </th>
            <th scope="col">First</th>
            <th scope="col">Last</th>
          </tr>
        </thead>
        <tbody>
          {devices.map((device, i) => (
            <tr key={i}>
              <th scope="row">
                <span class="mono">{device.deviceId ?? 'unnamed'}</span>
                <span class="message">
                  {device.visitorId && `visitor ${device.visitorId} `}
                  {device.fpHash && `fingerprint ${device.fpHash}`}
                </span>
              </th>
              <td data-label="Heartbeats" class="number">
                {formatCount(device.heartbeatCount)}
              </td>
              <td data-label="First">
                <Time iso={device.firstHeartbeatAt} exact />
              </td>
              <td data-label="Last">
                <Time iso={device.lastHeartbeatAt} exact />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {deviceCount > devices.length && <p class="quiet">{counted(deviceCount, 'device')} in all.</p>}
    </section>
  )
}
