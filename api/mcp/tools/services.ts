import { z } from 'zod'
import { readServiceMapQuerySchema } from '../../../schemas/http/service-map.ts'
import { SERVICES } from '../../services/range.ts'
import { readMap } from '../../services/service-map.ts'
import { defineTool } from '../tool.ts'

/** Reads which service calls which. */
export const serviceMapTool = defineTool({
  name: 'service_map',
  title: 'See which service calls which',
  description:
    'Returns the services of the last hour, or of a time, with their spans, errors and durations, and the calls between them and to databases, queues and hosts, most calls first. Ask with `service` for the calls from and to one. Continue with search_traces, or outline_trace of the slowest call.',
  permission: 'org:telemetry:read',
  resource: SERVICES,
  madeOf: ['traces'],
  input: readServiceMapQuerySchema,
  output: {
    from: z.string(),
    to: z.string(),
    services: z.array(z.looseObject({ name: z.string(), spans: z.number(), errors: z.number() })),
    edges: z.array(z.looseObject({ caller: z.string().nullable(), callee: z.string().nullable(), calls: z.number() })),
  },
  async read(deps, request) {
    const map = await readMap(deps, request)
    if (!map.ok) return map
    const { stepSeconds: _, isCut, ...answer } = map.value
    const hint = 'edges: those with fewer calls are left out; ask for one `service`'
    return { ok: true, value: { answer, ...(isCut && { hint }) } }
  },
})
