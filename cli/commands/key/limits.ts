import type { Command } from 'commander'
import { z } from 'zod'
import { ORIGIN_RULE } from '../../../schemas/http/workspaces/schemas.ts'
import { type KeyQuotas, QUOTA_MAX, type SurfaceKey } from '../../../schemas/records/directory.ts'
import { isOriginPattern } from '../../../schemas/records/origin-pattern.ts'
import { parsedBy } from '../../terminal.ts'

/** Options that limit a key. `none` removes a limit from an existing key. */
export interface LimitOptions {
  readonly requestsPerSecond?: number | 'none'
  readonly bytesPerSecond?: number | 'none'
  readonly bytesPerDay?: number | 'none'
  readonly allowOrigin?: readonly string[]
}

/** Description of the limits, for the help of commands. */
export const LIMITS_HELP = `
A key over a quota gets 429 until there is room again. Each edge counts requests and bytes per second on its own; the
bytes of a day (UTC) are of all edges together. With allowed origins, pages of other origins get 403; requests without
an Origin header pass. Origins are exact (https://shop.example) or name all hosts below (https://*.shop.example).`

const quotaSchema = z
  .string()
  .regex(/^[1-9][0-9]{0,15}$/, 'It must be a whole number of at least 1.')
  .transform(Number)
  .refine(quota => quota <= QUOTA_MAX, `It must be at most ${QUOTA_MAX}.`)
const changeSchema = z.union([z.literal('none'), quotaSchema], 'It must be a whole number of at least 1, or none.')
const originSchema = z.string().refine(isOriginPattern, `It ${ORIGIN_RULE}.`)

/** Adds the options that limit a key. `mayRemove`: they accept `none` too. */
export function addLimitOptions(command: Command, { mayRemove }: { readonly mayRemove: boolean }): Command {
  const parse = parsedBy(mayRemove ? changeSchema : quotaSchema)
  const value = mayRemove ? '<number or none>' : '<number>'
  const parseOrigin = (text: string, before: readonly string[] = []) =>
    mayRemove && text === 'none' ? ['none'] : [...before, parsedBy(originSchema)(text)]
  return command
    .option(`--requests-per-second ${value}`, 'quota of requests per second, of each edge', parse)
    .option(`--bytes-per-second ${value}`, 'quota of bytes per second, of each edge', parse)
    .option(`--bytes-per-day ${value}`, 'quota of bytes per day (UTC), of all edges', parse)
    .option('--allow-origin <origin...>', 'origins whose pages may use a public key', parseOrigin)
}

/** Returns the quotas of a key after the options are applied to those before. */
export function quotasAfter(before: KeyQuotas, options: LimitOptions): KeyQuotas {
  const { requestsPerSecond, bytesPerSecond, bytesPerDay } = options
  const after = { ...before }
  for (const [name, quota] of Object.entries({ requestsPerSecond, bytesPerSecond, bytesPerDay })) {
    if (quota === 'none') delete after[name as keyof KeyQuotas]
    else if (quota !== undefined) after[name as keyof KeyQuotas] = quota
  }
  return after
}

/** Returns the allowed origins that the options state; null to remove them, undefined to leave them. */
export function originsAfter({ allowOrigin }: LimitOptions): string[] | null | undefined {
  if (allowOrigin === undefined) return undefined
  return allowOrigin.includes('none') ? null : [...new Set(allowOrigin)]
}

/** Describes the limits of a key in one text, empty for a key without limits. */
export function describeLimits({ quotas = {}, allowedOrigins }: Pick<SurfaceKey, 'quotas' | 'allowedOrigins'>): string {
  const texts = Object.entries(quotas).map(([name, quota]) => `${name}=${quota}`)
  if (allowedOrigins) texts.push(`allowedOrigins=${allowedOrigins.join(',')}`)
  return texts.join(' ')
}
