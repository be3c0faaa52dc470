import { z } from 'zod'
import { wholeNumber } from '../../../schemas/http/fields.ts'
import { instantQuerySchema } from '../../../schemas/http/filters.ts'
import { listLogsQuerySchema } from '../../../schemas/http/logs.ts'
import { pageLimit } from '../../../schemas/http/page.ts'
import { HOUR_S } from '../../../schemas/units.ts'
import { invalid } from '../../http/outcome.ts'
import { LOGS } from '../../logs/log-search.ts'
import { readLogsPage } from '../../logs/logs.ts'
import { defineTool } from '../tool.ts'
import { attributesOf, nextCursor } from './fields.ts'

const WITHIN_SECONDS = 60

/** Searches log records. */
export const searchLogsTool = defineTool({
  name: 'search_logs',
  title: 'Search log records',
  description:
    'Searches log records by trace, span, session, service, severity, words and attribute, newest first. `around` finds those before and after a time. Without a trace or a time, the last hour is searched.',
  permission: 'org:telemetry:read',
  resource: LOGS,
  madeOf: ['logs'],
  input: listLogsQuerySchema.safeExtend({
    limit: pageLimit(50, 20),
    around: instantQuerySchema.optional().meta({ description: 'Only records near this time. Excludes from and to.' }),
    within: wholeNumber(1, HOUR_S)
      .optional()
      .meta({ description: `Seconds before and after \`around\`: ${WITHIN_SECONDS} if absent.` }),
  }),
  output: {
    from: z.string().optional(),
    to: z.string().optional(),
    logs: z.array(z.looseObject({ timestamp: z.string(), severity: z.string(), body: z.string() })),
    nextCursor,
  },
  async read(deps, { query: { around, within, ...query }, ...request }) {
    if (around !== undefined && (query.from !== undefined || query.to !== undefined)) {
      return invalid('around must not be given with "from" or "to"')
    }
    if (around === undefined && within !== undefined) return invalid('within needs "around"')
    const page = await readLogsPage(deps, { ...request, query: { ...query, ...rangeAround(around, within) } })
    if (!page.ok) return page
    const { logs, ...rest } = page.value
    return {
      ok: true,
      value: {
        answer: {
          ...rest,
          logs: logs.map(log => ({
            timestamp: log.timestamp,
            severity: log.severity,
            service: log.serviceName,
            ...(log.eventName !== undefined && { eventName: log.eventName }),
            body: log.body,
            ...(log.traceId !== undefined && { traceId: log.traceId }),
            ...(log.spanId !== undefined && { spanId: log.spanId }),
            ...(log.sessionId !== undefined && { sessionId: log.sessionId }),
            ...(log.attributes.length > 0 && { attributes: attributesOf(log.attributes) }),
          })),
        },
      },
    }
  },
})

function rangeAround(around: string | undefined, within = WITHIN_SECONDS) {
  if (around === undefined) return {}
  const at = Date.parse(around)
  const time = (ms: number) => new Date(Math.max(ms, 0)).toISOString()
  return { from: time(at - within * 1_000), to: time(at + within * 1_000) }
}
