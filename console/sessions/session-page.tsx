import { readSession } from '../api/generated/client.ts'
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
              <Fact name="Devices">{session.devices.length}</Fact>
              <Fact name="Logs">
                <a href={addressOf('logs', { session: id, last: '7d' })}>Log records of the session</a>
              </Fact>
            </Facts>
            <Story session={session} />
          </>
        )}
      </Shown>
    </>
  )
}
