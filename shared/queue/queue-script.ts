import { scriptsIn } from '../runtime/redis/script.ts'
import { COMPLETIONS_MAX_BYTES, UPLOADS_MAX_BYTES } from './upload-budget.ts'
import { UPLOAD_LIFETIME_S } from './upload-keys.ts'

/** Reads a script of the queues by its name in `scripts/` (README). */
export const queueScript = scriptsIn(new URL('scripts/', import.meta.url), {
  UPLOAD_LIFETIME_S,
  UPLOADS_MAX_BYTES,
  COMPLETIONS_MAX_BYTES,
})
