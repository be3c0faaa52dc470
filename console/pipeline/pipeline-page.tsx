import { listSurfaces, listWatermarks, readPipeline, type Watermark } from '../api/generated/client.ts'
import { formatSeconds } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { Fact, Facts } from '../ui/facts.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Time, Title } from '../ui/text.tsx'
import { DeadLetters } from './dead-letters.tsx'
import { useFresh } from './fresh.ts'
import { NotStored } from './not-stored.tsx'
import { LATE_SECONDS, Queues } from './queues.tsx'

const PAGE_SIZE = 50

/** Whether everything that surfaces have sent is stored: what waits in each queue, how much comes, and what could not be stored. */
export function PipelinePage() {
  const pipeline = useFresh('pipeline', signal => readPipeline({}, { signal }))
  const marks = useFresh('watermarks', signal => listWatermarks({ limit: PAGE_SIZE }, { signal }))
  const surfaces = useLoad('surfaces', signal => listSurfaces({ limit: PAGE_SIZE }, { signal }))
  const nameOf = (id: string) => surfaces.value?.surfaces.find(surface => surface.id === id)?.name ?? id
  return (
    <>
      <Title text="Pipeline" />
      <section>
        <h2>Queues</h2>
        <Shown loaded={pipeline} what="the queues">
          {value => <Queues pipeline={value} />}
        </Shown>
      </section>
      {pipeline.value?.history && <NotStored history={pipeline.value.history} />}
      <section>
        <h2>Surfaces</h2>
        <Shown loaded={marks} what="the watermarks">
          {({ watermarks, readAt }) => (
            <>
              {watermarks.length === 0 && <Notice title="No surfaces yet" text="A surface is what sends telemetry." />}
              {watermarks.map(mark => (
                <Surface key={mark.surfaceId} name={nameOf(mark.surfaceId)} mark={mark} readAt={readAt} />
              ))}
            </>
          )}
        </Shown>
      </section>
      <DeadLetters nameOf={nameOf} />
    </>
  )
}

function Surface(props: { readonly name: string; readonly mark: Watermark; readonly readAt: string }) {
  const { name, mark, readAt } = props
  const waiting = Object.entries(mark.oldestAgeSeconds).filter(([, seconds]) => seconds > 0)
  const settled = Object.values(mark.settledBefore).map(iso => Date.parse(iso))
  const behind = (Date.parse(readAt) - Math.min(...settled)) / 1_000
  return (
    <div class="surface">
      <h3>{name}</h3>
      <p>
        {waiting.length === 0 ? <span class="tag good">nothing waits</span> : <span class="tag">in progress</span>}{' '}
        <span class="quiet">
          {behind < 1
            ? 'everything accepted so far is settled'
            : `everything accepted until ${formatSeconds(behind)} ago is settled`}
        </span>
      </p>
      {waiting.length > 0 && (
        <Facts>
          {waiting.map(([queue, seconds]) => (
            <Fact key={queue} name={queue}>
              <span class={seconds > LATE_SECONDS ? 'tag bad' : undefined}>{formatSeconds(seconds)}</span>
            </Fact>
          ))}
        </Facts>
      )}
      <details>
        <summary>
          All queues and watermarks<span class="hidden"> of {name}</span>
        </summary>
        <div class="columns">
          <table class="attributes">
            <caption>Age of the oldest unfinished request</caption>
            <tbody>
              {Object.entries(mark.oldestAgeSeconds).map(([queue, seconds]) => (
                <tr key={queue}>
                  <th scope="row">{queue}</th>
                  <td>{seconds === 0 ? 'nothing waits' : formatSeconds(seconds)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          <table class="attributes">
            <caption>Everything accepted before is settled</caption>
            <tbody>
              {Object.entries(mark.settledBefore).map(([kind, iso]) => (
                <tr key={kind}>
                  <th scope="row">{kind}</th>
                  <td>
                    <Time iso={iso} exact />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </div>
  )
}
