import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_EXCEPTION, EXAMPLE_TIMES } from '../example-values.ts'
import { findingId } from '../findings/operations.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { callerProblems, findingsProblems } from '../problem-sets.ts'
import {
  askedTraceIdSchema,
  readSpansBodySchema,
  readTraceQuerySchema,
  spansSchema,
  traceColumnsSchema,
  traceCompletenessSchema,
  traceSchema,
} from './schemas.ts'
import { listTracesQuerySchema, tracesPageSchema } from './search.ts'
import { EXAMPLE_WHERE } from './where.ts'

const { sessionId, serviceName } = EXAMPLE

const span = {
  spanId: EXAMPLE.spanId,
  name: 'GET /cart',
  kind: 'SERVER',
  serviceName,
  startTimeUnixNano: `${EXAMPLE.recordedAtMs}000000`,
  endTimeUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
  durationMs: 42,
  statusCode: 'ERROR',
  statusMessage: EXAMPLE_EXCEPTION.message,
  sessionId,
  httpRoute: '/cart',
  occurrenceCount: 1,
  timestamp: EXAMPLE_TIMES.startedAt,
} as const
const totals = {
  rootCount: 1,
  danglingParentCount: 0,
  startedAtUnixNano: `${EXAMPLE.recordedAtMs}000000`,
  endedAtUnixNano: `${EXAMPLE.recordedAtMs + 42}000000`,
  wallDurationMs: 42,
  truncated: false,
} as const

const completeness = { state: 'complete', settledBefore: EXAMPLE_TIMES.receivedAt, reasons: [], losses: [] } as const

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  readFindingTrace: {
    traceId: EXAMPLE.traceId,
    spans: [span],
    ...totals,
  },
  listTraces: {
    traces: [
      {
        traceId: EXAMPLE.traceId,
        firstSpan: { spanId: EXAMPLE.spanId, name: 'GET /cart', serviceName },
        startedAtUnixNano: totals.startedAtUnixNano,
        endedAtUnixNano: totals.endedAtUnixNano,
        wallDurationMs: 42,
        spanCount: 1,
        errorCount: 1,
        services: [serviceName],
        serviceCount: 1,
      },
    ],
    nextCursor: null,
  },
  readTrace: {
    traceId: EXAMPLE.traceId,
    spanCount: 1,
    ...totals,
    names: ['GET /cart'],
    services: [serviceName],
    repeated: { spans: [], counts: [] },
    completeness,
    missingParents: [],
    spans: {
      ids: EXAMPLE.spanId,
      startDeltaNanos: [0],
      durationNanos: [42_000_000],
      parents: [-1],
      names: [0],
      services: [0],
      kinds: [2],
      statuses: [2],
      flags: [0],
    },
  },
  readTraceCompleteness: {
    traceId: EXAMPLE.traceId,
    ...completeness,
    spanCount: 1,
    rootCount: 1,
    danglingParentCount: 0,
    missingParents: [],
  },
  readSpans: {
    traceId: EXAMPLE.traceId,
    spans: [
      {
        ...span,
        surfaceId: EXAMPLE.surfaceId,
        receivedAt: EXAMPLE_TIMES.receivedAt,
        traceState: '',
        flags: 0,
        attributes: [{ key: 'http.route', type: 'string', value: '/cart' }],
        droppedAttributesCount: 0,
        events: [
          {
            timeUnixNano: `${EXAMPLE.recordedAtMs + 41}000000`,
            name: 'exception',
            attributes: [
              { key: 'exception.type', type: 'string', value: EXAMPLE_EXCEPTION.type },
              { key: 'exception.message', type: 'string', value: EXAMPLE_EXCEPTION.message },
            ],
            droppedAttributesCount: 0,
          },
        ],
        droppedEventsCount: 0,
        links: [],
        droppedLinksCount: 0,
        findingIds: [EXAMPLE.findingId],
        resource: { attributes: { 'service.name': serviceName }, droppedAttributesCount: 0, schemaUrl: '' },
        scope: { name: '', version: '', attributes: {}, droppedAttributesCount: 0, schemaUrl: '' },
      },
    ],
    rest: [],
    tooLarge: [],
    absent: [],
  },
} as const

/** Reads a trace (docs/api/findings.md#trace). */
export const readTrace: PermittedOperation = {
  operationId: 'readFindingTrace',
  method: 'GET',
  path: '/v3/findings/:findingId/traces/:traceId',
  service: 'api-findings',
  tag: 'findings',
  summary: 'Read every retained span of a trace of a finding',
  credentials: READER,
  permission: 'org:findings:read',
  parameters: { path: z.object({ findingId, traceId: askedTraceIdSchema }), query: readTraceQuerySchema },
  success: {
    status: 200,
    description: 'The trace, with its spans ordered by start.',
    contents: { 'application/json': { schema: traceSchema, example: ANSWERS.readFindingTrace } },
  },
  problems: findingsProblems,
}

const { service, name, status, minDurationMs, attribute, where, session, hasFinding, from, to, ...others } =
  listTracesQuerySchema.shape

const listQuery = z.object({
  ...others,
  service: service.meta({ example: EXAMPLE.serviceName }),
  name: name.meta({ example: 'GET /cart' }),
  status: status.meta({ example: 'ERROR' }),
  minDurationMs: minDurationMs.meta({ example: 10 }),
  attribute: attribute.meta({ example: 'http.route=/cart' }),
  where: where.meta({ example: EXAMPLE_WHERE }),
  session: session.meta({ example: EXAMPLE.sessionId }),
  hasFinding: hasFinding.meta({ example: 'true' }),
  from: from.meta({ example: EXAMPLE.from }),
  to: to.meta({ example: EXAMPLE.to }),
})

/** Lists traces (docs/api/traces.md#traces). */
export const listTraces: PermittedOperation = {
  operationId: 'listTraces',
  method: 'GET',
  path: '/v3/traces',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'List the traces of the workspace that match, newest first',
  description:
    'One span must match `service`, `name`, `status`, `minDurationMs`, `attribute` and `where` together. A page with a `nextCursor` may have fewer traces.',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { query: listQuery },
  success: {
    status: 200,
    description: 'A page of traces.',
    contents: { 'application/json': { schema: tracesPageSchema, example: ANSWERS.listTraces } },
  },
  problems: callerProblems,
}

const ofTrace = z.object({ traceId: askedTraceIdSchema })

/** Reads all spans of a trace as columns (docs/api/traces.md#trace-columns). */
export const readTraceColumns: PermittedOperation = {
  operationId: 'readTrace',
  method: 'GET',
  path: '/v3/traces/:traceId',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'Read all spans of a trace, without their details',
  description:
    'The response is compressed if `Accept-Encoding` has gzip. A trace whose response has more than 24 MiB is read only so.',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { path: ofTrace },
  success: {
    status: 200,
    description: 'The trace, as columns.',
    contents: { 'application/json': { schema: traceColumnsSchema, example: ANSWERS.readTrace } },
  },
  isCompressible: true,
  problems: callerProblems,
}

/** Reads how complete a trace is (docs/api/traces.md#completeness). */
export const readCompleteness: PermittedOperation = {
  operationId: 'readTraceCompleteness',
  method: 'GET',
  path: '/v3/traces/:traceId/completeness',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'Read how complete a trace is, and why spans are missing',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { path: ofTrace },
  success: {
    status: 200,
    description: 'How complete the trace is.',
    contents: { 'application/json': { schema: traceCompletenessSchema, example: ANSWERS.readTraceCompleteness } },
  },
  problems: callerProblems,
}

/** Reads the details of some spans of a trace (docs/api/traces.md#span-details). */
export const readSpans: PermittedOperation = {
  operationId: 'readSpans',
  method: 'POST',
  path: '/v3/traces/:traceId/spans',
  service: 'api-analytics',
  tag: 'traces',
  summary: 'Read everything that was received of some spans',
  credentials: READER,
  permission: 'org:telemetry:read',
  parameters: { path: ofTrace },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: readSpansBodySchema, example: { spanIds: [EXAMPLE.spanId] } } },
  },
  success: {
    status: 200,
    description: 'The spans.',
    contents: { 'application/json': { schema: spansSchema, example: ANSWERS.readSpans } },
  },
  problems: callerProblems,
}
