import { z } from 'zod'

const LIFETIME_MAX_SECONDS = 100 * 365 * 86_400
const RULE = `must be a whole number of seconds from 1 to ${LIFETIME_MAX_SECONDS}, or null for no expiry`

/** `secondsUntilExpiration` of a key (spec 2.10). A hundred years, so that its end is a date that can be written. */
export const keyLifetimeSchema = z
  .int({ error: issue => (issue.input === undefined ? 'is required: seconds, or null for no expiry' : RULE) })
  .min(1, RULE)
  .max(LIFETIME_MAX_SECONDS, RULE)
  .nullable()
  .meta({ description: 'Seconds; null for no expiry.' })
