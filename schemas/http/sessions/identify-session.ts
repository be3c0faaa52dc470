import { z } from 'zod'
import { text, textOf, uuidSchema } from '../fields.ts'
import { sessionIdSchema } from './schemas.ts'

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
  const request = z.object(
    {
      sessionId: sessionIdSchema.meta({ description: 'The id of the session, as its SDK made it.' }),
      identifier: text.meta({ description: 'Who the end user is, to the application.' }),
      source: identifySourceSchema(providerNames),
      deviceId: uuidSchema.nullish(),
      visitorId: uuidSchema.nullish(),
      fpHash: text.nullish().meta({ description: 'A fingerprint of the browser.' }),
      avatar: text.optional().meta({ description: 'Address of a picture. It is kept, and never fetched.' }),
      email: text.regex(EMAIL, 'must be an email address').meta({ format: 'email' }).optional(),
      name: text.optional(),
      traits: z
        .custom<object>(value => typeof value === 'object' && value !== null && !Array.isArray(value), {
          error: 'must be an object',
        })
        .meta({
          type: 'object',
          additionalProperties: true,
          description: 'Whatever else is known of the user: any keys, any values, nested at most 100 deep.',
        })
        .optional(),
      country: textOf(0, 2).meta({ description: 'ISO 3166-1 alpha-2, where the application has it so.' }).optional(),
    },
    'must be a JSON object',
  )
  return request.meta({ id: 'IdentifySessionRequest' })
}
export type IdentifySession = z.infer<ReturnType<typeof identifySessionSchema>>

/**
 * Spec 2.2: a provider by its type and the name that goes with it, or `custom` with any name. Described as a union; the
 * messages come from one check, since that of a union names neither the field nor what it may be.
 */
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
    .meta({ id: 'IdentifySource', description: 'Who vouches for the identity.', ...unionOf(nameOfType) })
}

/** The variants of a source in JSON Schema, instead of what they have in common. */
function unionOf(nameOfType: ReadonlyMap<string, string>) {
  const variant = (type: string, name: object) => ({
    type: 'object',
    properties: { type: { type: 'string', enum: [type] }, name: { type: 'string', ...name } },
    required: ['type', 'name'],
  })
  const providers = [...nameOfType].map(([type, name]) => variant(type, { enum: [name] }))
  return { oneOf: [...providers, variant('custom', {})], type: undefined, properties: undefined, required: undefined }
}
