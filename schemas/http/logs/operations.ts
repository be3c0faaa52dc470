import { z } from 'zod'
import { READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { logsProblems } from '../problem-sets.ts'
import { ANSWERS, EXAMPLE_SEARCH } from './examples.ts'
import { listLogsQuerySchema, logHistogramQuerySchema, logHistogramSchema, logsPageSchema } from './schemas.ts'

const { limit, cursor, ...conditions } = listLogsQuerySchema.shape

const filter = {
  trace: conditions.trace.meta({ example: EXAMPLE.traceId }),
  span: conditions.span.meta({ example: EXAMPLE.spanId }),
  session: conditions.session.meta({ example: EXAMPLE.sessionId }),
  service: conditions.service.meta({ example: EXAMPLE.serviceName }),
  severity: conditions.severity.meta({ example: 'WARN' }),
  q: conditions.q.meta({ example: 'cart empty' }),
  attribute: conditions.attribute.meta({ example: 'http.route=/cart' }),
  from: conditions.from.meta({ example: EXAMPLE_SEARCH.from }),
  to: conditions.to.meta({ example: EXAMPLE_SEARCH.to }),
  receivedFrom: conditions.receivedFrom.meta({ example: EXAMPLE_SEARCH.from }),
}

const ofLogs = {
  method: 'GET',
  service: 'api-analytics',
  tag: 'logs',
  credentials: READER,
  permission: 'org:telemetry:read',
  problems: logsProblems,
} as const

/** Lists log records (docs/api/logs.md#logs). */
export const listLogs: PermittedOperation = {
  ...ofLogs,
  operationId: 'listLogs',
  path: '/v3/logs',
  summary: 'List the log records of the workspace, newest first',
  description: 'A page may have fewer records than `limit`, because it has room for about 1 MiB.',
  parameters: { query: z.object({ ...filter, limit, cursor }) },
  success: {
    status: 200,
    description: 'A page of log records.',
    contents: { 'application/json': { schema: logsPageSchema, example: ANSWERS.listLogs } },
  },
}

/** Counts log records over time (docs/api/logs.md#logs). */
export const readLogHistogram: PermittedOperation = {
  ...ofLogs,
  operationId: 'readLogHistogram',
  path: '/v3/logs/histogram',
  summary: 'Count the log records of the workspace over time, by severity',
  description: 'The conditions are those of the list of log records.',
  parameters: {
    query: z.object({ ...filter, step: logHistogramQuerySchema.shape.step.meta({ example: 300 }) }),
  },
  success: {
    status: 200,
    description: 'The number of records of each step.',
    contents: { 'application/json': { schema: logHistogramSchema, example: ANSWERS.readLogHistogram } },
  },
}
