import type { Command } from 'commander'
import { type ReceiptRow, selectReceipt } from '../../../clickhouse/queries/select-receipt.ts'
import { readReceiptSecret } from '../../../shared/directory/receipt-secret.ts'
import { openReceiptId } from '../../../shared/ids/receipt.ts'
import { readWatermarks } from '../../../shared/queue/watermark.ts'
import type { StoresCommandContext } from '../../command-context.ts'
import { EXIT, exitCodesHelp } from '../../exit-codes.ts'
import { counted, printable } from '../../terminal.ts'

const HELP = `
Shows what became of an accepted request of any workspace. Its id is in the header x-receipt-id of the answer.

  queued         accepted, and not processed yet
  stored         its records are stored, except those that it names
  dead_lettered  not stored, kept as it was sent
  discarded      neither stored nor kept: too many dead letters
  refused        its answer stated why
  missing        everything that was accepted with it is settled, and it has no outcome: its rows have expired, or it was lost

${exitCodesHelp({
  [EXIT.failed]: 'a store is unavailable',
  [EXIT.notFound]: 'no workspace has such a receipt',
})}

Example:
  $ npm run cli -- receipt rct_06k3v…`

/** A request is accepted within this time after it has arrived (docs/api/receipts.md#watermarks). */
const ACCEPTED_WITHIN_MS = 20_000
const QUERY_TIMEOUT_MS = 30_000

/** Adds `receipt`, which an operator asks about a request of any workspace. */
export function addReceipt(parent: Command, { withStores, print, exit }: StoresCommandContext): void {
  parent
    .command('receipt')
    .description('show what became of an accepted request')
    .argument('<receipt>', 'the id of the receipt (rct_…)')
    .option('--json', 'print the receipt as JSON')
    .addHelpText('after', HELP)
    .action((id: string, { json }: { json?: boolean }) =>
      withStores(async ({ redis, store, clickhouse, withQueues }) => {
        const secret = await readReceiptSecret(redis)
        for await (const { id: workspaceId, slug } of store.workspaces()) {
          const opened = secret && openReceiptId(secret, workspaceId, id)
          if (opened === undefined) continue
          const { surfaceId, kind, arrivedAtMs } = opened
          const surface = { workspaceId, surfaceId }
          // The watermark first: what is settled before it has its rows.
          const { surfaces } = await withQueues(queues => readWatermarks(queues, [surface], { beyondLosses: true }))
          const signal = AbortSignal.timeout(QUERY_TIMEOUT_MS)
          const rows = await selectReceipt(clickhouse, { workspaceId, ...opened }, signal)
          const isSettled = (surfaces[0]?.settledBeforeMs[kind] ?? 0) > arrivedAtMs + ACCEPTED_WITHIN_MS
          const outcomes = rows.map(outcomeOf)
          const last = outcomes.findLast(({ status }) => status === 'stored') ?? outcomes.at(-1)
          const shown = {
            ...{ id, status: last?.status ?? (isSettled ? 'missing' : 'queued'), kind, ...surface },
            ...{ workspace: slug, receivedAt: new Date(arrivedAtMs).toISOString(), outcomes },
          }
          return print(json ? JSON.stringify(shown) : describe(shown))
        }
        exit(EXIT.notFound, `no workspace has the receipt ${JSON.stringify(id)}`)
      }),
    )
}

/** Outcome of a request, as it was sent or in a replay. */
interface Outcome {
  readonly status: 'stored' | 'discarded' | 'refused' | 'dead_lettered'
  readonly settledAt: string
  /** Set for a replay. */
  readonly replayedAt?: string
  readonly reason?: string
  readonly objectKey?: string
  readonly rejected: readonly { readonly reason: string; readonly records: number }[]
}

function outcomeOf({ reason, objectKey, isDiscarded, storedAtMs, replayedAtMs, rejections }: ReceiptRow): Outcome {
  const key = objectKey || rejections.find(({ object_key: ofRecords }) => ofRecords !== '')?.object_key
  const refused = isDiscarded ? 'discarded' : objectKey === '' ? 'refused' : 'dead_lettered'
  return {
    status: reason === '' ? 'stored' : refused,
    settledAt: new Date(Number(storedAtMs)).toISOString(),
    ...(Number(replayedAtMs) > 0 && { replayedAt: new Date(Number(replayedAtMs)).toISOString() }),
    ...(reason !== '' && { reason }),
    ...(key && { objectKey: key }),
    rejected: rejections.map(({ reason: label, records }) => ({ reason: label, records: Number(records) })),
  }
}

interface ShownReceipt {
  readonly id: string
  readonly status: string
  readonly kind: string
  readonly workspace: string
  readonly surfaceId: string
  readonly receivedAt: string
  readonly outcomes: readonly Outcome[]
}

function describe({ id, status, kind, workspace, surfaceId, receivedAt, outcomes }: ShownReceipt): string {
  return [
    `${id}: ${status}`,
    `  a request of ${kind} of the surface ${surfaceId} of ${workspace}, received ${receivedAt}`,
    ...outcomes.flatMap(outcome => [
      ...(outcome.replayedAt === undefined ? [] : [`  replayed ${outcome.replayedAt}`]),
      `  ${outcome.status} ${outcome.settledAt}${outcome.reason === undefined ? '' : `: ${outcome.reason}`}`,
      ...outcome.rejected.map(({ reason, records }) => `  ${counted(records, 'record')}: ${reason}`),
      ...(outcome.objectKey === undefined ? [] : [`  its bytes: ${outcome.objectKey}`]),
    ]),
  ]
    .map(printable)
    .join('\n')
}
