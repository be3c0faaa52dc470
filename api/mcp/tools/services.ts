import { z } from 'zod'
import { instantQuerySchema } from '../../../schemas/http/filters.ts'
import { SERVICES } from '../../services/range.ts'
import { readMap } from '../../services/service-map.ts'
import { defineTool } from '../tool.ts'
import { text } from './fields.ts'

/** Reads which service calls which. */
export const serviceMapTool = defineTool({
  name: 'service_map',
  title: 'See which service calls which',
  description:
    'Returns the services of the last hour, or of a time, with spans, errors and durations, and the calls between them and to databases, queues and hosts, most first. Continue with outline_trace of the slowest call.',
  permission: 'org:telemetry:read',
  resource: SERVICES,
  madeOf: ['traces'],
  input: z.object({
    service: text(1_024, 'Only calls from and to this service.').optional(),
    environment: text(256, 'Only of this deployment.environment.name.').optional(),
    from: instantQuerySchema.optional(),
    to: instantQuerySchema.optional(),
  }),
  output: {
    from: z.string(),
    to: z.string(),
    services: z.array(z.looseObject({ name: z.string() })),
    edges: z.array(z.looseObject({ calls: z.number() })),
  },
  async read(deps, request) {
    const map = await readMap(deps, { ...request, query: { ...request.query, surface: undefined } })
    if (!map.ok) return map
    const { stepSeconds: _, isCut, ...answer } = map.value
    const hint = 'edges: those with fewer calls are left out; ask for one `service`'
    return { ok: true, value: { answer, ...(isCut && { hint }) } }
  },
})
