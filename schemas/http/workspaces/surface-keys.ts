import { z } from 'zod'
import { exactObject } from '../json-object.ts'
import { nextCursorSchema } from '../page.ts'
import { keyLifetimeSchema } from './key-lifetime.ts'

/** What a secret key may be for (spec section 5, rule 2). */
export const SECRET_KEY_SCOPES = ['release:write'] as const
const SCOPES_MAX = 10
const SCOPE_SHOWN_MAX_CHARACTERS = 64
const scopeRule = `must be a scope of secret keys: ${SECRET_KEY_SCOPES.join(', ')}`
const scopeSchema = z.enum(SECRET_KEY_SCOPES, {
  error: ({ input }) =>
    typeof input === 'string'
      ? `${scopeRule}; not ${JSON.stringify(input.slice(0, SCOPE_SHOWN_MAX_CHARACTERS))}`
      : scopeRule,
})
const secondsUntilExpiration = keyLifetimeSchema.optional()
const instant = z.iso.datetime()

/** POST /v3/surfaces/{surfaceId}/keys. */
export const createSurfaceKeySchema = z
  .discriminatedUnion(
    'kind',
    [
      exactObject({
        kind: z.literal('public'),
        scopes: z.never('must be left out: a public key has none').optional(),
        secondsUntilExpiration,
      }),
      exactObject({
        kind: z.literal('secret'),
        scopes: z
          .array(scopeSchema, {
            error: issue => (issue.input === undefined ? 'is required for a secret key' : 'must be an array of scopes'),
          })
          .max(SCOPES_MAX, `must have at most ${SCOPES_MAX} items`),
        secondsUntilExpiration,
      }),
    ],
    { error: issue => (issue.code === 'invalid_union' ? 'must be "public" or "secret"' : 'must be a JSON object') },
  )
  .meta({ id: 'CreateSurfaceKeyRequest' })
export type CreateSurfaceKey = z.infer<typeof createSurfaceKeySchema>

export const surfaceKeyIdSchema = z.string().regex(/^key_[0-9a-z]{1,64}$/)
const kindSchema = z.enum(['public', 'secret'])

/** 201: the only answer with the secret. */
export const surfaceKeyCreatedSchema = z.strictObject({
  key: z
    .strictObject({
      id: surfaceKeyIdSchema,
      kind: kindSchema,
      secret: z.string().meta({ description: 'The value of the key, of either kind. No other answer has it.' }),
      scopes: z.array(scopeSchema).optional().meta({ description: 'Of a secret key.' }),
      expiresAt: instant.nullable(),
    })
    .meta({ id: 'NewSurfaceKey' }),
})
export type SurfaceKeyCreated = z.infer<typeof surfaceKeyCreatedSchema>

export const listedSurfaceKeySchema = z
  .strictObject({
    id: surfaceKeyIdSchema,
    kind: kindSchema,
    prefix: z.string().max(6).meta({ description: 'What its kind begins with, and at most 3 characters behind it.' }),
    scopes: z.array(z.string()),
    createdAt: instant,
    expiresAt: instant.nullable(),
    revokedAt: instant.nullable(),
  })
  .meta({ id: 'SurfaceKey' })
export type ListedSurfaceKey = z.infer<typeof listedSurfaceKeySchema>

/** GET /v3/surfaces/{surfaceId}/keys: the newest first, revoked and expired ones too. */
export const surfaceKeysPageSchema = z
  .strictObject({ keys: z.array(listedSurfaceKeySchema), nextCursor: nextCursorSchema })
  .meta({ id: 'SurfaceKeysPage' })
export type SurfaceKeysPage = z.infer<typeof surfaceKeysPageSchema>
