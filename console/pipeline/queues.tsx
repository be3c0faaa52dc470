import type { Pipeline, PipelineQueue, PipelineRate } from '../api/generated/client.ts'
import { counted, formatBytes, formatCount, formatSeconds } from '../state/format.ts'
import { Sparkline } from '../ui/sparkline.tsx'
import { Notice } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'

/** Age of the oldest unfinished request from which a queue is shown as late. */
export const LATE_SECONDS = 60

/** The queues with what waits in them, and what has come through them in the last 24 hours. */
export function Queues({ pipeline }: { readonly pipeline: Pipeline }) {
  const { queues, history, readAt, isPartial, unavailable } = pipeline
  const rateOf = (queue: PipelineQueue) => history?.rates.find(({ kind }) => kind === queue.kind)
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
      {shown.length > 0 && <Table queues={shown} rateOf={rateOf} />}
      <p class="quiet">
        as of <Time iso={readAt} exact />
        {isPartial && ', of the newest 1,000 surfaces'}
      </p>
    </>
  )
}

function Table(props: {
  readonly queues: readonly PipelineQueue[]
  readonly rateOf: (queue: PipelineQueue) => PipelineRate | undefined
}) {
  return (
    <table class="list">
      <caption class="hidden">Queues with what waits, and requests of the last 24 hours</caption>
      <thead>
        <tr>
          <th scope="col">Queue</th>
          <th scope="col" class="number">
            Waiting
          </th>
          <th scope="col" class="number">
            Work
          </th>
          <th scope="col" class="number">
            Oldest
          </th>
          <th scope="col">Last 24 hours</th>
          <th scope="col" class="number">
            Requests
          </th>
          <th scope="col" class="number">
            Records
          </th>
          <th scope="col" class="number">
            Sent
          </th>
        </tr>
      </thead>
      <tbody>
        {props.queues.map(queue => (
          <Row key={queue.queue} queue={queue} rate={props.rateOf(queue)} />
        ))}
      </tbody>
    </table>
  )
}

function Row({ queue, rate }: { readonly queue: PipelineQueue; readonly rate: PipelineRate | undefined }) {
  const { workBytes, oldestAgeSeconds, requests, kind } = queue
  return (
    <tr>
      <th scope="row">
        <span class="type">{queue.queue}</span>
        {kind !== undefined && kind !== queue.queue && <span class="message">{kind}</span>}
      </th>
      <td data-label="Waiting" class="number" title={requests == null ? undefined : counted(requests, 'request')}>
        {requests == null ? '–' : formatCount(requests)}
      </td>
      <td data-label="Work" class="number">
        {workBytes === 0 ? '–' : formatBytes(workBytes)}
      </td>
      <td data-label="Oldest" class="number">
        <span class={oldestAgeSeconds > LATE_SECONDS ? 'tag bad' : undefined}>
          {oldestAgeSeconds === 0 ? '–' : formatSeconds(oldestAgeSeconds)}
        </span>
      </td>
      <td>{rate && <Sparkline counts={rate.requests} />}</td>
      <td data-label="Requests" class="number">
        {rate ? formatCount(sum(rate.requests)) : '–'}
      </td>
      <td data-label="Records" class="number">
        {rate ? formatCount(sum(rate.records)) : '–'}
      </td>
      <td data-label="Sent" class="number">
        {rate ? formatBytes(sum(rate.bytes)) : '–'}
      </td>
    </tr>
  )
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
