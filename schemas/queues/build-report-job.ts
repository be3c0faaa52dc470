import { z } from 'zod'

/** Frame attributes of the queue `build-reports`; the body is the report (BuildReport) in JSON, checked by the edge. */
export const buildReportJobSchema = z.object({ slug: z.string() })
export type BuildReportJob = z.infer<typeof buildReportJobSchema>
