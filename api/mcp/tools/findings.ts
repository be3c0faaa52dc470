import { z } from 'zod'
import { isOrdered, orderedRange } from '../../../schemas/http/filters.ts'
import {
  type FindingFrame,
  findingActivityQuerySchema,
  listFindingsQuerySchema,
} from '../../../schemas/http/findings/schemas.ts'
import { pageLimit } from '../../../schemas/http/page.ts'
import { readFindingDetails, readFindingTraces } from '../../findings/finding.ts'
import { readFindingsPage } from '../../findings/list-findings.ts'
import { readValues } from '../../findings/values.ts'
import { rfc3339FromUnixMs } from '../../http/format-time.ts'
import { FINDINGS } from '../../http/resource.ts'
import { defineTool } from '../tool.ts'
import { nextCursor, text } from './fields.ts'

const finding = z.looseObject({
  id: z.string(),
  type: z.string(),
  message: z.string(),
  status: z.string(),
  serviceName: z.string(),
  firstSeenAt: z.string(),
  lastSeenAt: z.string(),
  occurrenceCount: z.number(),
})
const entry = z.looseObject({})

/** Frames and buckets of an answer. */
const FRAMES_MAX = 40
/** Frames whose source is shown with the lines around it. The others have their line. */
const SOURCES_MAX = 5
const BUCKETS_MAX = 48
/** Characters of a stack in an unknown format. */
const STACK_TEXT_MAX = 4_000
const TRACES_MAX = 10

// Counts of each finding would take most of an answer.
const { occurrences: _, ...listed } = listFindingsQuerySchema.shape

/** Lists findings. */
export const listFindingsTool = defineTool({
  name: 'list_findings',
  title: 'List findings',
  description:
    'Lists findings: exceptions grouped by their cause, the one received last first. Begin here to see what is wrong, then use get_finding.',
  permission: 'org:findings:read',
  resource: FINDINGS,
  madeOf: ['traces', 'logs'],
  input: z.object({ ...listed, limit: pageLimit(25, 10) }).refine(isOrdered, orderedRange),
  output: { findings: z.array(finding), nextCursor },
  async read(deps, request) {
    const page = await readFindingsPage(deps, request)
    return page.ok ? { ok: true, value: { answer: page.value } } : page
  },
})

/** Reads a finding. */
export const getFindingTool = defineTool({
  name: 'get_finding',
  title: 'Get a finding with its code',
  description:
    'Returns one finding: its exception and causes, its stack frames with original files, lines and source lines where source maps have them, versions, how many people and where, its number over time, its last occurrences and the newest traces. Continue with outline_trace and session_timeline.',
  permission: 'org:findings:read',
  resource: FINDINGS,
  madeOf: ['traces', 'logs'],
  input: findingActivityQuerySchema.safeExtend({ findingId: text(64, 'The id of a finding.') }),
  output: {
    finding,
    frames: z.array(entry).describe('Innermost first. Unless `resolved`, the position is that of the built file.'),
    causes: z.array(entry).describe('The exceptions behind it, with their frames.'),
    stack: z.string().optional().describe('The stack as it was sent, if its format is unknown.'),
    activity: z
      .looseObject({ bucketSeconds: z.number(), buckets: z.array(entry) })
      .describe('Buckets with occurrences.'),
    grouping: entry.describe(
      'Why its exceptions are one finding: `by` a rule, the client, frames, the message or lines.',
    ),
    lastOccurrences: z.array(entry),
    values: z
      .looseObject({})
      .describe('How many people and sessions, and the most frequent versions, browsers and routes.'),
    traces: z.array(entry),
  },
  async read(deps, { query: { findingId, ...range }, ...request }) {
    const [details, traces, values] = await Promise.all([
      readFindingDetails(deps, { ...request, query: range }, findingId),
      readFindingTraces(deps, { ...request, query: { limit: TRACES_MAX, cursor: undefined } }, findingId),
      readValues(deps, { ...request, query: range }, findingId, { people: false }),
    ])
    if (!details.ok) return details
    if (!traces.ok) return traces
    if (!values.ok) return values
    const { frames, stack, grouping, occurrences, lastOccurrences, seenIn, mergedFindingIds, ...rest } =
      details.value.finding
    const fromMs = Date.parse(occurrences.from)
    const buckets = occurrences.counts
      .map((count, i) => ({
        startsAt: rfc3339FromUnixMs(fromMs + i * occurrences.bucketSeconds * 1_000),
        count,
      }))
      .filter(({ count }) => count > 0)
    const { surfaceIds, serviceNames, serviceVersions, approximateTraceCount, approximateSessionCount } = seenIn
    return {
      ok: true,
      value: {
        answer: {
          finding: {
            ...rest,
            ...(mergedFindingIds && { mergedFindingCount: mergedFindingIds.length }),
            ...{ surfaceIds, serviceNames, serviceVersions, approximateTraceCount, approximateSessionCount },
          },
          frames: withSources(frames.slice(0, FRAMES_MAX)),
          causes: (stack?.exceptions ?? [])
            .slice(1)
            .map(({ frames: own, ...cause }) => ({ ...cause, frames: own.slice(0, FRAMES_MAX) })),
          ...(stack && frames.length === 0 && { stack: stack.text.slice(0, STACK_TEXT_MAX) }),
          activity: { bucketSeconds: occurrences.bucketSeconds, buckets: buckets.slice(-BUCKETS_MAX) },
          grouping,
          lastOccurrences,
          values: values.value,
          traces: traces.value.traces.map(({ id: _, ...trace }) => trace),
        },
        ...(frames.length > FRAMES_MAX && { hint: `frames: the first ${FRAMES_MAX} of ${frames.length} are shown` }),
      },
    }
  },
})

/** Leaves out the positions in built files, and the lines of source that would take most of an answer. */
function withSources(frames: readonly FindingFrame[]): object[] {
  let left = SOURCES_MAX
  return frames.map(({ generated: _, sourceLines, ...frame }) => ({
    ...frame,
    ...(sourceLines && left-- > 0 && { sourceLines }),
  }))
}
