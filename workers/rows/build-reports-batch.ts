import { BuildReportsTable } from '../../clickhouse/tables/build-reports-table.ts'
import { buildReportSchema } from '../../schemas/http/releases/schemas.ts'
import { buildReportJobSchema } from '../../schemas/queues/jobs.ts'
import { createJsonRowsBatch } from '../sink/json-rows-batch.ts'
import type { RowBatch } from '../sink/row-batch.ts'

/** Creates rows of `build_reports` from the reports of the queue `build-reports`. */
export function createBuildReportsBatch(): RowBatch {
  const table = new BuildReportsTable()
  return createJsonRowsBatch([table.buffer], (frame, value) => {
    const { slug } = buildReportJobSchema.parse(JSON.parse(frame.attributes))
    const { workspaceId, surfaceId, receivedAtMs } = frame
    table.append({ ...buildReportSchema.parse(value), workspaceId, surfaceId, releaseSlug: slug, receivedAtMs })
  })
}
