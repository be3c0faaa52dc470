import { z } from 'zod'

/** `rel_…` (spec 2.6). Those that we give have 26 base32 characters behind it; any other is an unknown one. */
export const releaseSlugSchema = z
  .string()
  .regex(/^rel_.*$/, 'must begin with rel_')
  .max(128)
