import { z } from 'zod'
import { sourceMapPathSchema } from '../../records/source-map-path.ts'
import { wholeNumber } from '../page.ts'

/** Parts of one map (CONTRACT 4.5). */
const MAX_PARTS = 4_096

/** The query of PUT /v3/releases/{releaseSlug}/source-maps/upload (spec 4.6). */
export const sourceMapQuerySchema = z.object({ path: sourceMapPathSchema })

/** The query of PUT /v3/releases/{releaseSlug}/source-maps (spec 4.5). */
export const sourceMapPartQuerySchema = z.object({
  part: wholeNumber(0, MAX_PARTS - 1).meta({ description: 'Which part it is; parts are joined in this order.' }),
  path: sourceMapPathSchema,
})

/** The answer of both. */
export const uploadedSourceMapSchema = z
  .strictObject({ objectKey: z.string().meta({ description: 'Where the object store has or will have it.' }) })
  .meta({ id: 'UploadedSourceMap' })
