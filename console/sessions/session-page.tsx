import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { readSession, type Session, type SessionDevice } from '../api/generated/client.ts'
import type { SessionClock } from '../replay/follow.ts'
import { counted, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Guarded, Loading, Notice, Shown } from '../ui/states.tsx'
import { Fact, Facts, Time, Title } from '../ui/text.tsx'
import { Timeline } from './timeline.tsx'

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

type Replay = ComponentType<{ readonly sessionId: string; readonly onClock: (clock: SessionClock) => void }>

/** The recording of a session, and everything else of it on the same clock. */
function Story({ session }: { readonly session: Session }) {
  const [clock, setClock] = useState<SessionClock>()
  const [replay, setReplay] = useState<{ readonly View: Replay } | 'missing'>()
  const isRecorded = session.replay !== null
  useEffect(() => {
    if (!isRecorded) return
    import('../replay/replay-section.tsx').then(
      ({ ReplaySection: View }) => setReplay({ View }),
      () => setReplay('missing'),
    )
  }, [isRecorded])
  return (
    <>
      {!isRecorded && <p class="quiet">This session has no recording, or its retention has ended.</p>}
      {isRecorded && replay === undefined && <Loading text="Loading the player" />}
      {replay === 'missing' && (
        <Notice title="The player could not be loaded" text="The console was updated, or the connection is lost.">
          <button type="button" onClick={() => location.reload()}>
            Load again
          </button>
        </Notice>
      )}
      {replay !== undefined && replay !== 'missing' && (
        <Guarded what="The recording">
          <replay.View sessionId={session.id} onClock={setClock} />
        </Guarded>
      )}
      <Timeline id={session.id} startedAt={session.firstSeenAt} clock={clock} />
    </>
  )
}
