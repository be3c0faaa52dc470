import type { Command } from 'commander'
import { z } from 'zod'
import { HOUR_S } from '../../schemas/units.ts'
import { readInstallation } from '../../shared/directory/installation-record.ts'
import { type AuditReport, NOT_JUDGED, type RequestLine } from '../audit/report.ts'
import { runAudit } from '../audit/run-audit.ts'
import type { StoresCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { findWorkspace } from '../find-workspace.ts'
import { counted, parsedBy, printable, rowOf } from '../terminal.ts'

const HELP = `
Compares, for each surface and hour of arrival, what the edges have counted, what Redis has accepted, what the batches have
logged, and what the tables and the object store have:

  received = refused + done + accepted
  accepted = stored + dead-lettered + discarded + answered + queued
  rows stored = rows in the table + rows deleted on purpose
  each object that a row names is in the store

Refused requests are counted by status, as in "2 × 413". A request is done if there was nothing to accept, such as an empty export.
Requests whose key names no surface, and those whose client leaves before the body is complete, are not counted.

Records that rules of the workspace dropped are counted by rule. Their requests are stored.

If the Redis of the queues has lost its data, the report states from when on requests may be lost, and judges these hours.

An hour is judged when its requests are settled, two minutes after its end at the earliest. Hours from before requests were
counted, and days that have expired, are not judged. The summary names the hours that were judged, and those that were not with the
reason. Reads only, apart from saving the latest counts. Full hours, UTC.

${exitCodesHelp({
  [EXIT.done]: 'everything that was judged adds up',
  [EXIT.failed]: 'a store is unavailable: run the command again',
  [EXIT.notFound]: 'the workspace does not exist',
  [EXIT.differs]: 'something does not add up or was lost; each difference is a line',
  [EXIT.notJudged]: 'nothing was judged',
})}

Example:
  $ npm run cli -- audit --from 2026-11-21T00:00Z --to 2026-11-22T00:00Z`

const timeSchema = z
  .string()
  .refine(text => !Number.isNaN(Date.parse(text)), 'It must be a time such as 2026-11-21T00:00Z.')
  .transform(text => Date.parse(text) / 1_000)

interface AuditCommandOptions {
  readonly from: number
  readonly to: number
  readonly workspace?: string
  readonly json?: boolean
}

/** Adds `audit`, which anyone with access to the stores can run to see whether anything was lost. */
export function addAudit(parent: Command, context: StoresCommandContext): void {
  const { print, withStores, exit } = context
  parent
    .command('audit')
    .description('compare what was accepted with what is stored')
    .requiredOption('--from <time>', 'the first hour of arrival', parsedBy(timeSchema))
    .requiredOption('--to <time>', 'the end, exclusive', parsedBy(timeSchema))
    .option('--workspace <slug>', 'only this workspace, by slug or id')
    .option('--json', 'print the report as JSON')
    .addHelpText('after', HELP)
    .action(async ({ from, to, workspace: slugOrId, json }: AuditCommandOptions) => {
      if (from >= to) return exit(EXIT.usage, '--from must be before --to')
      await withStores(async ({ redis, store, withQueues, clickhouse, objects, retentionDays }) => {
        const workspace = slugOrId === undefined ? undefined : await findWorkspace(store, slugOrId, context)
        if (slugOrId !== undefined && workspace === undefined) return
        const range = {
          from: Math.max(Math.floor(from / HOUR_S) * HOUR_S, firstKeptSecond(retentionDays)),
          to: Math.ceil(to / HOUR_S) * HOUR_S,
          workspaceId: workspace?.id ?? '',
        }
        const losses = (await readInstallation(redis))?.losses ?? []
        const report = await withQueues(queues =>
          runAudit({ queues, losses, clickhouse, objects, now: Date.now }, range),
        )
        print(json ? JSON.stringify(report) : describe(report))
        if (!json && from < range.from) print(`not judged: hours before ${report.from}, which have expired`)
        if (report.differences.length + report.losses.length > 0) exit(EXIT.differs)
        else if (report.requests.every(({ notJudged }) => notJudged !== undefined)) exit(EXIT.notJudged)
      })
    })
}

function refusedText([status, requests]: [string, number]): string {
  return `${requests} × ${status}`
}

/** Returns the beginning of the first day that no table has dropped. */
function firstKeptSecond(retentionDays: number): number {
  const today = Math.floor(Date.now() / 1_000 / (24 * HOUR_S))
  return (today - retentionDays + 1) * 24 * HOUR_S
}

const COLUMNS = [
  'received',
  'refused',
  'done',
  'unconfirmed',
  'accepted',
  'stored',
  'deadLettered',
  'discarded',
  'answered',
  'queued',
] as const satisfies readonly (keyof RequestLine)[]

function describe({ from, to, losses, requests, tables, dropped, objects, differences }: AuditReport): string {
  const widths = [17, 24, 26, ...COLUMNS.map(name => name.length + 2)]
  const lines = requests.map(line =>
    rowOf(
      [
        line.hour,
        line.workspaceId,
        line.surfaceId,
        ...COLUMNS.map(name => String(line[name])),
        [...Object.entries(line.refusedByStatus).map(refusedText), ...(line.notJudged ? ['not judged'] : [])].join(
          ', ',
        ),
      ],
      widths,
    ),
  )
  return [
    `${from} to ${to}`,
    rowOf(['hour', 'workspace', 'surface', ...COLUMNS, ''], widths),
    ...lines,
    '',
    ...tables.map(({ table, logged, deleted, present }) =>
      rowOf([table, `${logged} stored`, `${deleted} deleted on purpose`, `${present} in the table`], [20, 20, 30, 20]),
    ),
    rowOf(['objects', `${objects.named} named`, `${objects.missing} missing`], [20, 20, 30]),
    ...dropped.map(({ hour, workspaceId, surfaceId, kind, rule, records }) =>
      printable(
        `dropped by rule ${rule}: ${counted(records, 'record')} of ${kind}, surface ${surfaceId} of ${workspaceId}, hour ${hour}`,
      ),
    ),
    '',
    ...losses.map(
      ({ since, seen, found }) =>
        `the Redis of the queues lost its data between ${seen} and ${found}: requests that arrived from ${since} on and were not ` +
        'stored by then are lost, and up to a minute of their counts',
    ),
    differences.length > 0 ? `${counted(differences.length, 'difference')}:` : verdict(requests, losses.length > 0),
    ...differences.map(
      ({ table, workspaceId, surfaceId, hour, day, text }) =>
        `${table}: surface ${surfaceId} of ${workspaceId}, hour ${hour}, day ${day}: ${text}`,
    ),
    ...judgedText(requests),
  ].join('\n')
}

/** Returns the verdict on an audit without a difference. It claims no more than was judged. */
function verdict(requests: readonly RequestLine[], isLost: boolean): string {
  const judged = requests.filter(({ notJudged }) => notJudged === undefined)
  if (judged.length === 0) return 'nothing was judged'
  const all = isLost ? 'everything else' : 'everything'
  return judged.length === requests.length ? `${all} adds up` : `${all} that was judged adds up`
}

/** Returns a line for the hours that were judged, and one for each reason why others were not. */
function judgedText(requests: readonly RequestLine[]): string[] {
  if (requests.length === 0) return ['not judged: no request arrived in these hours']
  const byReason = Map.groupBy(requests, ({ notJudged }) => notJudged)
  const judged = byReason.get(undefined)
  const reasons = Object.entries(NOT_JUDGED) as [keyof typeof NOT_JUDGED, string][]
  return [
    ...(judged ? [`judged: ${hoursText(judged)}`] : []),
    ...reasons.flatMap(([reason, text]) => {
      const lines = byReason.get(reason)
      return lines ? [`not judged: ${hoursText(lines)}: ${text}`] : []
    }),
  ]
}

function hoursText(lines: readonly RequestLine[]): string {
  const hours = [...new Set(lines.map(({ hour }) => hour))].sort()
  const [first, last] = [hours[0], hours.at(-1)]
  const range = first === last ? first : `${first} to ${last}`
  return `${counted(lines.length, 'line')} of ${counted(hours.length, 'hour')}, ${range}`
}
