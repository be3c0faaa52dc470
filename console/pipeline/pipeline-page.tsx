import { useEffect } from 'preact/hooks'
import {
  listSurfaces,
  listWatermarks,
  type Pipeline,
  type PipelineQueue,
  type PipelineRate,
  readPipeline,
  type Watermark,
} from '../api/generated/client.ts'
import { counted, formatBytes, formatCount, formatSeconds, sum } from '../state/format.ts'
import { type Loaded, useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { NamedValues } from '../ui/attributes.tsx'
import { Sparkline } from '../ui/bars.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Fact, Facts, Time, Title } from '../ui/text.tsx'
import { DeadLetters } from './dead-letters.tsx'
import { sentenceOf } from './reasons.ts'
import { verdictOf } from './verdict.ts'

const PAGE_SIZE = 50

/** Whether everything that surfaces have sent is stored: what waits in each queue, how much comes, and what could not be stored. */
export function PipelinePage() {
  const pipeline = useFresh('pipeline', signal => readPipeline({}, { signal }))
  const marks = useFresh('watermarks', signal => listWatermarks({ limit: PAGE_SIZE }, { signal }))
  const surfaces = useLoad('surfaces of the pipeline', signal => listSurfaces({ limit: PAGE_SIZE }, { signal }))
  const nameOf = (id: string) => surfaces.value?.surfaces.find(surface => surface.id === id)?.name ?? id
  return (
    <>
      <Title text="Pipeline" />
      {pipeline.value && <VerdictLine pipeline={pipeline.value} />}
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

const VERDICTS = { good: 'Nothing lost', doubt: 'Look at it', bad: 'Lost' } as const

/** Whether anything is lost, first of all. */
function VerdictLine({ pipeline }: { readonly pipeline: Pipeline }) {
  const { is, text } = verdictOf(pipeline)
  return (
    <p class="verdict">
      <span class={`tag ${is}`}>{VERDICTS[is]}</span> {text}
    </p>
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
          <NamedValues
            caption="Age of the oldest unfinished request"
            rows={Object.entries(mark.oldestAgeSeconds)}
            keyOf={([queue]) => queue}
            name={([queue]) => queue}
            value={([, seconds]) => (seconds === 0 ? 'nothing waits' : formatSeconds(seconds))}
          />
          <NamedValues
            caption="Everything accepted before is settled"
            rows={Object.entries(mark.settledBefore)}
            keyOf={([kind]) => kind}
            name={([kind]) => kind}
            value={([, iso]) => <Time iso={iso} exact />}
          />
        </div>
      </details>
    </div>
  )
}

const EVERY_MS = 5_000

/**
 * Reads a value as `useLoad` does, and again every few seconds while the page is visible. The value that is shown does not
 * look stale meanwhile. After a fault, the repetition of `useLoad` is the only one.
 */
function useFresh<T>(key: string, read: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const loaded = useLoad(key, read)
  const { isLoading, fault, again, value } = loaded
  useEffect(() => {
    if (isLoading || fault) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const wait = () => {
      clearTimeout(timer)
      timer = document.hidden ? undefined : setTimeout(again, EVERY_MS)
    }
    wait()
    document.addEventListener('visibilitychange', wait)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', wait)
    }
  }, [isLoading, fault])
  return { ...loaded, isLoading: isLoading && value === undefined }
}

type PipelineHistory = NonNullable<Pipeline['history']>

/** Requests that were refused or not stored in the last 24 hours, by reason. Nothing is shown if there are none. */
function NotStored({ history }: { readonly history: PipelineHistory }) {
  const { letters, refused, purgedLetters } = history
  if (letters.length === 0 && refused.length === 0 && purgedLetters === 0) return null
  return (
    <section>
      <h2>Not stored in the last 24 hours</h2>
      <div class="columns">
        {letters.length > 0 && <Letters letters={letters} />}
        {refused.length > 0 && <Refused refused={refused} />}
      </div>
      {purgedLetters > 0 && <p class="quiet">{counted(purgedLetters, 'dead letter')} purged</p>}
    </section>
  )
}

function Letters({ letters }: Pick<PipelineHistory, 'letters'>) {
  return (
    <NamedValues
      caption="Accepted, and dead letters since"
      rows={letters}
      keyOf={({ reason }) => reason}
      name={({ reason }) => (
        <a href={addressOf('pipeline', { reason })} title={sentenceOf(reason)}>
          {reason}
        </a>
      )}
      value={({ dead, replayed, discarded }) =>
        [
          dead > 0 && `${formatCount(dead)} not stored`,
          replayed > 0 && `${formatCount(replayed)} replayed`,
          discarded > 0 && `${formatCount(discarded)} discarded`,
        ]
          .filter(Boolean)
          .join(', ')
      }
    />
  )
}

function Refused({ refused }: Pick<PipelineHistory, 'refused'>) {
  return (
    <NamedValues
      caption="Refused in the response"
      rows={refused}
      keyOf={({ kind, status }) => `${kind} ${status}`}
      name={({ kind, status }) => `${kind}, status ${status}`}
      value={({ requests }) => counted(requests, 'request')}
    />
  )
}

/** Age of the oldest unfinished request from which a queue is shown as late. */
const LATE_SECONDS = 60

/** The queues with what waits in them, and what has come through them in the last 24 hours. */
function Queues({ pipeline }: { readonly pipeline: Pipeline }) {
  const { queues, history, readAt, isPartial, unavailable } = pipeline
  const rateOf: RateOf = queue => history?.rates.find(({ kind }) => kind === queue.kind)
  const shown = queues.filter(
    queue => queue.workBytes > 0 || queue.requests === null || queue.requests || rateOf(queue),
  )
  return (
    <>
      {unavailable !== null && (
        <p role="status" class="quiet">
          <span class="tag doubt">Not all can be shown</span> {unavailable}
        </p>
      )}
      {shown.length === 0 && history !== null && (
        <Notice title="Nothing waits" text="No surface has sent anything in the last 24 hours." />
      )}
      {shown.length === 0 && history === null && <p>Nothing waits.</p>}
      {shown.length > 0 && (
        <DataTable
          caption="Queues with what waits, and requests of the last 24 hours"
          columns={columnsOf(rateOf)}
          rows={shown}
          keyOf={({ queue }) => queue}
        />
      )}
      <p class="quiet">
        as of <Time iso={readAt} exact />
        {isPartial && ', of the newest 1,000 surfaces'}
      </p>
    </>
  )
}

type RateOf = (queue: PipelineQueue) => PipelineRate | undefined

function columnsOf(rateOf: RateOf): readonly Column<PipelineQueue>[] {
  const ofRate = (format: (rate: PipelineRate) => string) => (queue: PipelineQueue) => {
    const rate = rateOf(queue)
    return rate ? format(rate) : '–'
  }
  return [
    {
      head: 'Queue',
      cell: ({ queue, kind }) => (
        <>
          <span class="type">{queue}</span>
          {kind !== undefined && kind !== queue && <span class="message">{kind}</span>}
        </>
      ),
    },
    {
      head: 'Waiting',
      isNumber: true,
      title: ({ requests }) => (requests == null ? undefined : counted(requests, 'request')),
      cell: ({ requests }) => (requests == null ? '–' : formatCount(requests)),
    },
    { head: 'Work', isNumber: true, cell: ({ workBytes }) => (workBytes === 0 ? '–' : formatBytes(workBytes)) },
    { head: 'Oldest', isNumber: true, cell: ({ oldestAgeSeconds }) => <Age seconds={oldestAgeSeconds} /> },
    {
      head: 'Last 24 hours',
      isPlain: true,
      cell: queue => {
        const rate = rateOf(queue)
        return rate && <Sparkline counts={rate.requests} />
      },
    },
    { head: 'Requests', isNumber: true, cell: ofRate(({ requests }) => formatCount(sum(requests))) },
    { head: 'Records', isNumber: true, cell: ofRate(({ records }) => formatCount(sum(records))) },
    { head: 'Sent', isNumber: true, cell: ofRate(({ bytes }) => formatBytes(sum(bytes))) },
  ]
}

function Age({ seconds }: { readonly seconds: number }) {
  return (
    <span class={seconds > LATE_SECONDS ? 'tag bad' : undefined}>{seconds === 0 ? '–' : formatSeconds(seconds)}</span>
  )
}
