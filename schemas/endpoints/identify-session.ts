import { z } from 'zod'
import { sessionIdSchema, text, textOf, uuidSchema } from './session-id.ts'

/** RFC 5321's mailbox with a dotted domain, in the letters of any script (RFC 6531). */
const EMAIL =
  /^(?=.{3,254}$)(?=[^@]{1,64}@)[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+(\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+)*@([\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?\.)+[\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u

/** A provider is known by its display name; the `type` of a source is the same in lower case (CONTRACT 4.1). */
export const identityProvidersSchema = z
  .string()
  .default('Auth0,Clerk,Supabase')
  .transform(list => list.split(',').map(name => name.trim()))
  .refine(names => names.every(name => name !== ''), 'must be display names with commas between them')
  .refine(names => {
    const types = new Set(names.map(name => name.toLowerCase()))
    return types.size === names.length && !types.has('custom')
  }, 'must name each provider once, and none that is called custom')

/**
 * 4.1: POST /v3/session/identify (spec 2.1). Unknown fields are ignored. `traits` is only looked at: its keys are the
 * client's, and what is kept of it is its text.
 */
export function identifySessionSchema(providerNames: readonly string[]) {
  return z.object(
    {
      sessionId: sessionIdSchema,
      identifier: text,
      source: identifySourceSchema(providerNames),
      deviceId: uuidSchema.nullish(),
      visitorId: uuidSchema.nullish(),
      fpHash: text.nullish(),
      avatar: text.optional(),
      email: text.regex(EMAIL, 'must be an email address').optional(),
      name: text.optional(),
      traits: z
        .custom<object>(value => typeof value === 'object' && value !== null && !Array.isArray(value), {
          error: 'must be an object',
        })
        .optional(),
      country: textOf(0, 2).optional(),
    },
    'must be a JSON object',
  )
}
export type IdentifySession = z.infer<ReturnType<typeof identifySessionSchema>>

/** Spec 2.2: a provider by its type and the name that goes with it, or `custom` with any name. */
function identifySourceSchema(providerNames: readonly string[]) {
  const nameOfType = new Map(providerNames.map(name => [name.toLowerCase(), name]))
  const types = [...nameOfType.keys(), 'custom'].join(', ')
  return z
    .object(
      { type: text, name: text },
      { error: issue => (issue.input === undefined ? 'is required' : 'must be an object') },
    )
    .superRefine(({ type, name }, context) => {
      if (type === 'custom') return
      const expected = nameOfType.get(type)
      if (expected === undefined)
        context.addIssue({ code: 'custom', path: ['type'], message: `must be one of: ${types}` })
      else if (name !== expected)
        context.addIssue({ code: 'custom', path: ['name'], message: `must be ${expected} where type is ${type}` })
    })
}
