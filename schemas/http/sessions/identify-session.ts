import { z } from 'zod'
import { mustBeOneOf } from '../../rule-of.ts'
import { emailSchema, filledText, text, textOf } from '../fields.ts'
import { heartbeatSchema } from './schemas.ts'

/**
 * Setting of the accepted identity providers: display names, separated by commas. The `type` of a source is the name in
 * lower case (docs/api/sessions.md#identify).
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
 * Returns the schema of the body of POST /v3/session/identify (docs/api/sessions.md#identify). Unknown fields are ignored,
 * and optional ones that break their rule are left out (`parseOptionalFields`). `traits` is checked but not parsed: the
 * client chooses its keys, and it is stored as text.
 */
export function identifySessionSchema(providerNames: readonly string[]) {
  const request = z.object(
    {
      ...heartbeatSchema.shape,
      identifier: filledText.meta({ description: 'The id of the end user in the application.' }),
      source: identifySourceSchema(providerNames),
      avatar: filledText.optional().meta({ description: 'Address of a picture. It is stored, never fetched.' }),
      email: emailSchema.optional(),
      name: filledText.optional(),
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
      country: textOf(1, 2)
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
 * Returns the schema of a source: the type of a provider with its name, or `custom` with any name. Each variant has an id,
 * because a discriminator in OpenAPI maps its values to named schemas.
 */
function identifySourceSchema(providerNames: readonly string[]) {
  const providers = providerNames.map(name => {
    const type = name.toLowerCase()
    const error = ({ input }: { input?: unknown }) =>
      input === undefined ? 'is required' : `must be ${name} where type is ${type}`
    return sourceSchema(type, z.literal(name, { error })).meta({ id: `IdentifySource${componentName(name)}` })
  })
  const custom = sourceSchema('custom', text).meta({ id: 'IdentifySourceCustom' })
  const types = [...providerNames.map(name => name.toLowerCase()), 'custom']
  return z
    .discriminatedUnion('type', [custom, ...providers], {
      error({ code, input }) {
        if (code !== 'invalid_union') return input === undefined ? 'is required' : 'must be an object'
        const { type } = input as { type?: unknown }
        if (type === undefined) return 'is required'
        return typeof type === 'string' ? mustBeOneOf(types) : 'must be a string'
      },
    })
    .meta({ id: 'IdentifySource', description: 'The identity provider.' })
}

const sourceSchema = <N extends z.ZodType<string>>(type: string, name: N) => z.object({ type: z.literal(type), name })

/** Returns a provider's name in the characters that the name of a component may have. */
function componentName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9]/gu, character => `_${character.codePointAt(0)?.toString(16)}`)
}
