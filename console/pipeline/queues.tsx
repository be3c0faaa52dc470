import type { Pipeline, PipelineQueue, PipelineRate } from '../api/generated/client.ts'
import { counted, formatBytes, formatCount, formatSeconds } from '../state/format.ts'
import { Sparkline } from '../ui/bars.tsx'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Notice } from '../ui/states.tsx'
import { Time } from '../ui/text.tsx'

/** Age of the oldest unfinished request from which a queue is shown as late. */
export const LATE_SECONDS = 60

/** The queues with what waits in them, and what has come through them in the last 24 hours. */
export function Queues({ pipeline }: { readonly pipeline: Pipeline }) {
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

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}
