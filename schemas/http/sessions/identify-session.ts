import { z } from 'zod'
import { text, textOf, uuidSchema } from '../fields.ts'
import { sessionIdSchema } from './schemas.ts'

/** Mailbox of RFC 5321 with a dotted domain, in letters of any script (RFC 6531). */
const EMAIL =
  /^(?=.{3,254}$)(?=[^@]{1,64}@)[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+(\.[\p{L}\p{M}\p{N}!#$%&'*+/=?^_`{|}~-]+)*@([\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?\.)+[\p{L}\p{N}]([\p{L}\p{M}\p{N}-]{0,61}[\p{L}\p{M}\p{N}])?$/u

/**
 * Setting of the accepted identity providers: display names, separated by commas. The `type` of a source is the name in
 * lower case (docs/contract.md#identify).
 */
export const identityProvidersSchema = z
  .string()
  .default('Auth0,Clerk,Supabase')
  .transform(list => list.split(',').map(name => name.trim()))
  .refine(names => names.every(name => name !== ''), 'must be display names separated by commas')
  .refine(names => {
    const types = new Set(names.map(name => name.toLowerCase()))
    return types.size === names.length && !types.has('custom')
  }, 'must name each provider once, and must not name custom')

/**
 * Returns the schema of the body of POST /v3/session/identify (docs/contract.md#identify). Unknown fields are ignored.
 * `traits` is checked but not parsed: the client chooses its keys, and it is stored as text.
 */
export function identifySessionSchema(providerNames: readonly string[]) {
  const request = z.object(
    {
      sessionId: sessionIdSchema.meta({ description: 'The id of the session, as the SDK generated it.' }),
      identifier: text.meta({ description: 'The id of the end user in the application.' }),
      source: identifySourceSchema(providerNames),
      deviceId: uuidSchema.nullish(),
      visitorId: uuidSchema.nullish(),
      fpHash: text.nullish().meta({ description: 'A fingerprint of the browser.' }),
      avatar: text.optional().meta({ description: 'Address of a picture. It is stored, never fetched.' }),
      email: text.regex(EMAIL, 'must be an email address').meta({ format: 'email' }).optional(),
      name: text.optional(),
      traits: z
        .custom<object>(value => typeof value === 'object' && value !== null && !Array.isArray(value), {
          error: 'must be an object',
        })
        .meta({
          type: 'object',
          additionalProperties: true,
          description: 'Further properties of the user: any keys, any values, nested at most 100 deep.',
        })
        .optional(),
      country: textOf(0, 2)
        .meta({ description: 'Country, as ISO 3166-1 alpha-2 if the application has that.' })
        .optional(),
    },
    'must be a JSON object',
  )
  return request.meta({ id: 'IdentifySessionRequest' })
}
/** Body of POST /v3/session/identify. */
export type IdentifySession = z.infer<ReturnType<typeof identifySessionSchema>>

/**
 * Returns the schema of a source: the type of a provider with its name, or `custom` with any name. The document
 * describes a union. The messages come from one check, because those of a union name neither the field nor its valid
 * values.
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
    .meta({ id: 'IdentifySource', description: 'The identity provider.', ...unionOf(nameOfType) })
}

/** Returns the variants of a source in JSON Schema, which replace the schema of their common fields. */
function unionOf(nameOfType: ReadonlyMap<string, string>) {
  const variant = (type: string, name: object) => ({
    type: 'object',
    properties: { type: { type: 'string', enum: [type] }, name: { type: 'string', ...name } },
    required: ['type', 'name'],
  })
  const providers = [...nameOfType].map(([type, name]) => variant(type, { enum: [name] }))
  return { oneOf: [...providers, variant('custom', {})], type: undefined, properties: undefined, required: undefined }
}
