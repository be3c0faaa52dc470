import type { ServiceEdge } from '../api/generated/client.ts'
import { addressOf } from '../state/router.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Notice } from '../ui/states.tsx'
import { addressOfService } from './links.ts'
import { formatErrors, formatMs, formatRate } from './rates.tsx'

/** Calls between services, for those that were counted in this many seconds. */
export function CallsTable({ edges, seconds }: { readonly edges: readonly ServiceEdge[]; readonly seconds: number }) {
  return (
    <DataTable
      caption="Calls, those first with most"
      columns={columnsOf(seconds)}
      rows={edges}
      keyOf={({ caller, callee, kind, peer }) => JSON.stringify([caller, callee, kind, peer])}
      empty={<Notice title="No calls in this time" text="Calls are counted two minutes after their spans arrive." />}
    />
  )
}

function columnsOf(seconds: number): readonly Column<ServiceEdge>[] {
  return [
    {
      head: 'Caller',
      cell: ({ caller }) => (
        <span class="type">
          <ServiceName name={caller} />
        </span>
      ),
    },
    {
      head: 'Called',
      cell: ({ callee, peer }) => (callee === null ? peerText(peer) : <ServiceName name={callee} />),
    },
    {
      head: 'Kind',
      cell: ({ kind, callee, peer }) => (callee !== null && peer ? `${kind} by ${peerText(peer)}` : kind),
    },
    {
      head: 'Rate',
      isNumber: true,
      title: ({ calls }) => `${calls.toLocaleString()} calls`,
      cell: ({ calls }) => formatRate(calls, seconds),
    },
    {
      head: 'Errors',
      isNumber: true,
      title: ({ errors }) => `${errors.toLocaleString()} calls`,
      cell: ({ calls, errors }) => formatErrors({ spans: calls, errors }),
    },
    { head: 'p95 of callee', isNumber: true, cell: ({ durationMs }) => formatMs(durationMs?.p95) },
    { head: 'p95 of caller', isNumber: true, cell: ({ callerDurationMs }) => formatMs(callerDurationMs?.p95) },
    {
      head: 'Slowest',
      isNumber: true,
      cell: ({ slowest }) => <a href={addressOf(`traces/${slowest.traceId}`)}>{formatMs(slowest.durationMs)}</a>,
    },
  ]
}

function ServiceName({ name }: { readonly name: string | null }) {
  if (name === null) return <>unknown</>
  return <a href={addressOfService(name)}>{name || '(no name)'}</a>
}

function peerText(peer: ServiceEdge['peer']): string {
  if (peer === null) return 'unknown'
  return [peer.system, peer.name].filter(text => text !== '').join(' ')
}
