import { z } from 'zod'
import { pageLimit, pageQuerySchema } from '../../../schemas/http/page.ts'
import { ADMITTED_QUEUES } from '../../../schemas/queues/names.ts'
import { readWatermarksPage, WATERMARKS } from '../../pipeline/list-watermarks.ts'
import { defineTool } from '../tool.ts'
import { nextCursor } from './fields.ts'

/** Reads what waits to be stored. */
export const pipelineHealthTool = defineTool({
  name: 'pipeline_health',
  title: 'See whether telemetry is stored in time',
  description:
    'Returns for each surface what of its telemetry is stored: everything accepted before `settledBefore` is, and `waitingSeconds` is the age of the oldest request that still waits, by queue. Use it if something recent is missing.',
  permission: 'org:telemetry:read',
  resource: WATERMARKS,
  madeOf: ADMITTED_QUEUES,
  input: pageQuerySchema.safeExtend({ limit: pageLimit(20, 20) }),
  output: {
    surfaces: z.array(z.looseObject({ surfaceId: z.string(), waitingSeconds: z.record(z.string(), z.number()) })),
    nextCursor,
  },
  async read(deps, request) {
    const page = await readWatermarksPage(deps, request)
    if (!page.ok) return page
    const surfaces = page.value.watermarks.map(({ surfaceId, settledBefore, oldestAgeSeconds }) => ({
      surfaceId,
      settledBefore,
      waitingSeconds: Object.fromEntries(Object.entries(oldestAgeSeconds).filter(([, seconds]) => seconds > 0)),
    }))
    return { ok: true, value: { answer: { surfaces, nextCursor: page.value.nextCursor } } }
  },
})
