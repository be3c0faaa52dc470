import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { readSession, type Session, type SessionDevice, type SessionIdentity } from '../api/generated/client.ts'
import type { SessionClock } from '../replay/follow.ts'
import { counted, formatCount } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { AttributeTable, attributesOf } from '../ui/attributes.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Guarded, Loading, Notice, Shown } from '../ui/states.tsx'
import { Fact, Facts, Time, Title } from '../ui/text.tsx'
import { personOf } from './person.ts'
import { Timeline } from './timeline.tsx'

/** A session: its user and devices, and everything of it in the order of time. */
export function SessionPage({ id }: { readonly id: string }) {
  const loaded = useLoad(`session ${id}`, signal => readSession({ sessionId: id }, { signal }))
  const identity = loaded.value?.session.identity
  return (
    <>
      <Title text={identity ? personOf(identity) : 'Session'} quiet={id} />
      <Shown loaded={loaded} what="the session">
        {({ session }) => (
          <>
            <Facts>
              <Fact name={session.timesOfArrival ? 'First received' : 'First seen'}>
                <Time iso={session.firstSeenAt} exact />
              </Fact>
              <Fact name={session.timesOfArrival ? 'Last received' : 'Last seen'}>
                <Time iso={session.lastSeenAt} exact />
              </Fact>
              <Person identity={session.identity} />
              <Fact name="Devices">{formatCount(session.deviceCount)}</Fact>
              <Fact name="Logs">
                <a href={addressOf('logs', { session: id, from: 'now-7d' })}>Log records of the session</a>
              </Fact>
            </Facts>
            <Missing session={session} />
            <Identities session={session} />
            <Story session={session} />
            {session.devices.length > 0 && <Devices session={session} />}
          </>
        )}
      </Shown>
    </>
  )
}

/** The requests that pages of the session have numbered and that did not arrive. */
function Missing({ session: { pages } }: { readonly session: Session }) {
  const incomplete = pages.filter(({ missingCount }) => missingCount > 0)
  if (incomplete.length === 0) return null
  const total = incomplete.reduce((sum, { missingCount }) => sum + missingCount, 0)
  return (
    <Notice
      title={`${counted(total, 'request')} of this session did not arrive`}
      text="Its pages number their requests, and these numbers are missing. The last ones may still be on their way."
    >
      {incomplete.map(({ id, missing, missingCount, receivedCount }) => (
        <p key={id}>
          Page <span class="mono">{id}</span>: {formatCount(receivedCount)} arrived, {missing.join(', ')}
          {missingCount > missing.length && ` and ${formatCount(missingCount - missing.length)} more`} did not.
        </p>
      ))}
    </Notice>
  )
}

/** Who the user is, by the identity that was received last. */
function Person({ identity }: { readonly identity: Session['identity'] }) {
  if (identity === null) return <Fact name="User">not identified</Fact>
  const { identifier, email, country, source } = identity
  return (
    <>
      <Fact name="User">{identifier}</Fact>
      {email !== undefined && <Fact name="Email">{email}</Fact>}
      {country !== undefined && <Fact name="Country">{country}</Fact>}
      <Fact name="Identified by">{sourceOf(source)}</Fact>
    </>
  )
}

const sourceOf = ({ name, type }: SessionIdentity['source']) =>
  name.toLowerCase() === type.toLowerCase() ? name : `${name} (${type})`

const IDENTITY_COLUMNS: readonly Column<SessionIdentity>[] = [
  {
    head: 'User',
    cell: identity => (
      <>
        <span class="type">{personOf(identity)}</span>
        <span class="message">{identity.identifier}</span>
      </>
    ),
  },
  { head: 'Email', cell: ({ email }) => email ?? '–' },
  { head: 'Country', cell: ({ country }) => country ?? '–' },
  { head: 'Identified by', cell: ({ source }) => sourceOf(source) },
  { head: 'Received', cell: ({ attachedAt }) => <Time iso={attachedAt} exact /> },
]

/** What is known of the user: the traits, and the identities that were received before. */
function Identities({ session }: { readonly session: Session }) {
  const { identity, identities, identityCount } = session
  if (identity === null) return null
  // An avatar is an address of another host: loading it would name who looks at the session.
  const traits = attributesOf({ ...(identity.avatar && { avatar: identity.avatar }), ...identity.traits })
  return (
    <>
      {traits.length > 0 && (
        <section>
          <h2>Traits</h2>
          <AttributeTable attributes={traits} />
        </section>
      )}
      {identityCount > 1 && (
        <details>
          <summary>{counted(identityCount, 'identity', 'identities')}, the last received first</summary>
          <DataTable
            caption="Identities of the session"
            columns={IDENTITY_COLUMNS}
            rows={identities}
            keyOf={(_identity, i) => i}
          />
          {identityCount > identities.length && <p class="quiet">These are the last {identities.length}.</p>}
        </details>
      )}
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
