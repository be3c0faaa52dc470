import { type Command, Option } from 'commander'
import { z } from 'zod'
import { findingsPageSchema } from '../../schemas/http/findings/schemas.ts'
import { LISTED_STATUSES } from '../../schemas/http/findings/work.ts'
import { type Pipeline, pipelineSchema } from '../../schemas/http/pipeline.ts'
import {
  askedTraceIdSchema,
  SPAN_STATUSES,
  type TraceColumns,
  traceColumnsSchema,
} from '../../schemas/http/traces/schemas.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { EXIT, exitCodesHelp } from '../exit-codes.ts'
import { ACCESS_HELP, connectReader, type ReadOptions, urlOption } from '../reads/api-reader.ts'
import { counted, nounFor, parsedBy, printable, rowOf } from '../terminal.ts'
import { addFindingMerges } from './finding-merges.ts'
import { addFindingRules } from './finding-rules.ts'

const TRACE_HELP = `${ACCESS_HELP}

${exitCodesHelp({ [EXIT.failed]: 'the API is unavailable or refuses the token', [EXIT.notFound]: 'there is no such trace' })}

Example:
  $ npm run cli -- trace 5b8efff798038103d269b633813fc60c`

const idSchema = z
  .string()
  .toLowerCase()
  .refine(id => askedTraceIdSchema.safeParse(id).success, 'It must have 32 hex digits, or 16.')
  .transform(id => askedTraceIdSchema.parse(id))
const spansSchema = z
  .string()
  .regex(/^[1-9]\d{0,6}$/, 'It must be a whole number from 1.')
  .transform(Number)

/** Adds `trace`, which shows a trace as a tree. */
export function addTrace(parent: Command, context: ReadCommandContext): void {
  const { print, exit } = context
  parent
    .command('trace')
    .description('show a trace as a tree, and whether it is complete')
    .argument('<id>', 'the trace id', parsedBy(idSchema))
    .addOption(
      new Option('--spans <count>', 'how many spans to show').argParser(parsedBy(spansSchema)).default(200, '200'),
    )
    .addOption(urlOption())
    .option('--json', 'print the columns of the trace as the API returns them')
    .addHelpText('after', TRACE_HELP)
    .action(async (traceId: string, options: ReadOptions & { spans: number }) => {
      const reader = await connectReader(context, options)
      const trace = await reader.get(`/v3/traces/${traceId}`, traceColumnsSchema)
      if (trace === undefined) return exit(EXIT.notFound, `there is no trace ${traceId}, or it is no longer retained`)
      if (options.json) return print(JSON.stringify(trace))
      const { spanCount, wallDurationMs, services } = trace
      print(
        `trace ${traceId}: ${counted(spanCount, 'span')} of ${counted(services.length, 'service')} in ${wallDurationMs} ms`,
      )
      for (const line of describeCompleteness(trace)) print(line)
      for (const line of drawTrace(trace, options.spans)) print(line)
    })
}

const FINDINGS_HELP = `${ACCESS_HELP}

${exitCodesHelp({ [EXIT.failed]: 'the API is unavailable or refuses the token' })}

Example:
  $ npm run cli -- findings --service shop --status regressed --text "cannot read"`

const WIDTHS = [30, 30, 10, 10, 20]
const MESSAGE_CHARACTERS = 100

const limitSchema = z
  .string()
  .regex(/^([1-9]\d?|100)$/, 'It must be a whole number from 1 to 100.')
  .transform(Number)

interface FindingsOptions extends ReadOptions {
  readonly service?: string
  readonly text?: string
  readonly status?: string
  readonly limit: number
}

/** Adds `findings`, which lists the findings that occurred last, and the commands that merge, split and group them. */
export function addFindings(parent: Command, context: ReadCommandContext): void {
  const findings = parent
    .command('findings')
    .description('list the findings that occurred last')
    .option('--service <name>', 'only those of this service')
    .option('--text <text>', 'only those with this text in type or message')
    .addOption(new Option('--status <status>', 'only those with this status').choices(LISTED_STATUSES))
    .addOption(
      new Option('--limit <count>', 'how many, at most 100').argParser(parsedBy(limitSchema)).default(20, '20'),
    )
    .addOption(urlOption())
    .option('--json', 'print the findings as the API returns them, one a line')
    .addHelpText('after', FINDINGS_HELP)
    .action(async (options: FindingsOptions) => {
      const { service, text, status, limit, json } = options
      const reader = await connectReader(context, options)
      const query = new URLSearchParams({ limit: String(limit) })
      if (service !== undefined) query.set('service', service)
      if (text !== undefined) query.set('q', text)
      if (status !== undefined) query.set('status', status)
      const page = await reader.get(`/v3/findings?${query}`, findingsPageSchema)
      if (!json) context.print(rowOf(['FINDING', 'LAST SEEN', 'STATUS', 'COUNT', 'SERVICE', 'WHAT'], WIDTHS))
      for (const finding of page?.findings ?? []) {
        const { id, lastSeenAt, occurrenceCount, serviceName, title, type, message } = finding
        const what = (title ?? `${type}: ${message.split('\n', 1)[0]}`).slice(0, MESSAGE_CHARACTERS)
        const columns = [id, lastSeenAt, finding.status, String(occurrenceCount), serviceName, what]
        context.print(json ? JSON.stringify(finding) : rowOf(columns, WIDTHS))
      }
    })
  addFindingMerges(findings, context)
  addFindingRules(findings, context)
}

const PIPELINE_HELP = `${ACCESS_HELP}

${exitCodesHelp({ [EXIT.failed]: 'the API is unavailable or refuses the token' })}

Example:
  $ npm run cli -- pipeline`

const QUEUE_WIDTHS = [17, 8, 14, 10, 10]

/** Adds `pipeline`, which shows the unfinished requests of a workspace, and what was refused in the last 24 hours. */
export function addPipeline(parent: Command, context: ReadCommandContext): void {
  parent
    .command('pipeline')
    .description('show what waits to be stored, and what was refused in the last 24 hours')
    .addOption(urlOption())
    .option('--json', 'print the answer of the API')
    .addHelpText('after', PIPELINE_HELP)
    .action(async (options: ReadOptions) => {
      const reader = await connectReader(context, options)
      const pipeline = await reader.get('/v3/pipeline', pipelineSchema)
      if (pipeline === undefined) throw new Error('there is no such workspace')
      for (const line of options.json ? [JSON.stringify(pipeline)] : linesOf(pipeline)) context.print(line)
    })
}

function linesOf({ queues, history, unavailable }: Pipeline): string[] {
  const lines = [rowOf(['QUEUE', 'WAITING', 'WORK IN BYTES', 'OLDEST', 'REQUESTS'], QUEUE_WIDTHS)]
  for (const { queue, kind, requests, workBytes, oldestAgeSeconds } of queues) {
    const rate = history?.rates.find(counts => counts.kind === kind)
    if (workBytes === 0 && !requests && requests !== null && rate === undefined) continue
    const processed = rate === undefined ? '' : String(rate.requests.reduce((sum, count) => sum + count, 0))
    const age = `${oldestAgeSeconds.toFixed(1)} s`
    lines.push(
      rowOf([queue, requests == null ? '' : String(requests), String(workBytes), age, processed], QUEUE_WIDTHS),
    )
  }
  for (const { kind, status, requests } of history?.refused ?? []) {
    lines.push(`refused with ${status}: ${counted(requests, 'request')} of ${kind}`)
  }
  for (const { reason, dead, replayed, discarded } of history?.letters ?? []) {
    lines.push(`${reason}: ${counted(dead, 'dead letter')}, ${replayed} replayed, ${discarded} discarded`)
  }
  return unavailable === null ? lines : [...lines, unavailable]
}

const TIME_WIDTH = 12
/** Deeper spans are drawn at this depth. */
const MOST_DEPTH = 30

/** Returns the lines of a trace as a tree: when each span started, how long it took, its service and its name. */
function drawTrace(trace: TraceColumns, maxSpans: number): string[] {
  const { spans, names, services } = trace
  const starts = startsOf(trace)
  const serviceWidth = Math.min(Math.max(0, ...services.map(({ length }) => length)), 24)
  const nameOf = (i: number) => names[spans.names[i] ?? -1] ?? '…'
  const serviceOf = (i: number) => services[spans.services[i] ?? -1] ?? '…'
  const lines = treeOrder(spans.parents)
    .slice(0, maxSpans)
    .map(([i, depth]) => {
      const status = SPAN_STATUSES[spans.statuses[i] ?? 0] === 'ERROR' ? '  ERROR' : ''
      const parent = spans.parents[i] === -2 ? '  (its parent is missing)' : ''
      const times = [milliseconds(starts[i] ?? 0), milliseconds(spans.durationNanos[i] ?? 0)]
      const name = `${'  '.repeat(Math.min(depth, MOST_DEPTH))}${printable(nameOf(i))}${status}${parent}`
      const service = printable(serviceOf(i)).padEnd(serviceWidth)
      return `${times.map(time => time.padStart(TIME_WIDTH)).join('')}  ${service}  ${name}`
    })
  const left = trace.spanCount - lines.length
  return left > 0 ? [...lines, `… and ${left} more ${nounFor(left, 'span')}`] : lines
}

/** Returns how complete a trace is, and what was lost at its time. */
function describeCompleteness({ completeness, missingParents }: TraceColumns): string[] {
  const { state, settledBefore, reasons, losses } = completeness
  if (state === 'complete') return [`complete up to ${settledBefore}`]
  const missing = missingParents.length > 0 ? `, ${counted(missingParents.length, 'missing parent')}` : ''
  const lost = losses.map(({ cause, surfaceId, isNear, rule, count, receivedFrom, receivedTo }) => {
    const what = counted(count, cause === 'refused' || cause === 'dead_lettered' ? 'request' : 'span')
    const near = isNear ? ', a surface of the trace, within a minute of its spans' : ''
    const by = rule === undefined ? '' : ` by your rule ${printable(rule)}`
    return `  ${cause}${by}: ${what} of ${surfaceId}, received ${receivedFrom} to ${receivedTo}${near}`
  })
  return [`${state}: ${reasons.join(', ')}${missing}`, ...lost]
}

/** Returns when each span started, in nanoseconds after the first one. */
function startsOf({ spans }: TraceColumns): number[] {
  let at = 0
  return spans.startDeltaNanos.map(delta => {
    at += delta
    return at
  })
}

/** Returns the spans with their depths, each before its children. Spans of a cycle come last, as roots. */
function treeOrder(parents: readonly number[]): [span: number, depth: number][] {
  const children = new Map<number, number[]>()
  const roots: number[] = []
  parents.forEach((parent, i) => {
    if (parent < 0) roots.push(i)
    else {
      const known = children.get(parent)
      if (known === undefined) children.set(parent, [i])
      else known.push(i)
    }
  })
  const order: [number, number][] = []
  const seen = new Set<number>()
  const open: [number, number][] = []
  for (const root of [...roots, ...parents.keys()]) {
    open.push([root, 0])
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [span, depth] = next
      if (seen.has(span)) continue
      seen.add(span)
      order.push(next)
      for (const child of (children.get(span) ?? []).toReversed()) open.push([child, depth + 1])
    }
  }
  return order
}

function milliseconds(nanos: number): string {
  return `${(nanos / 1_000_000).toFixed(3)} ms`
}
