import { z } from 'zod'
import { PERMISSIONS, permissionSchema, QUOTA_MAX } from '../../records/directory.ts'
import { isOriginPattern } from '../../records/origin-pattern.ts'
import { DAY_S } from '../../units.ts'
import { exactObject, listOf, textOf, uuidSchema } from '../fields.ts'
import { shownActorSchema } from '../findings/work.ts'
import { nextCursorSchema } from '../page.ts'

const instant = z.iso.datetime()
const expiresAt = instant.nullable().meta({ description: 'Null for a key that does not expire.' })
const revokedAt = instant.nullable().meta({ description: 'Null for a key that is not revoked.' })

const LIFETIME_MAX_SECONDS = 100 * 365 * DAY_S
const LIFETIME_RULE = `must be a whole number of seconds from 1 to ${LIFETIME_MAX_SECONDS}, or null for no expiry`

/** `secondsUntilExpiration` of a key. At most a hundred years, so that the expiry is a valid date. */
const keyLifetimeSchema = z
  .int({ error: issue => (issue.input === undefined ? 'is required: seconds, or null for no expiry' : LIFETIME_RULE) })
  .min(1, LIFETIME_RULE)
  .max(LIFETIME_MAX_SECONDS, LIFETIME_RULE)
  .nullable()
  .meta({ description: 'Seconds. Null means no expiry.' })

/** Id of a workspace API key. */
export const apiKeyIdSchema = z.string().regex(/^key_[0-9a-z]{1,64}$/)

/** Id of a surface. */
export const surfaceIdSchema = z.string().regex(/^srf_[0-9a-z]{1,64}$/)

/** Body of POST /v3/surfaces. */
export const createSurfaceSchema = exactObject({ name: textOf(1, 120) }).meta({ id: 'CreateSurfaceRequest' })

/** A surface. */
const listedSurfaceSchema = z
  .strictObject({ id: surfaceIdSchema, name: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Surface', description: 'An application of a workspace, such as a web site or a server.' })
/** A surface. */
export type ListedSurface = z.infer<typeof listedSurfaceSchema>

/** Response of POST /v3/surfaces. */
export const surfaceCreatedSchema = z.strictObject({ surface: listedSurfaceSchema })

/** Response of GET /v3/surfaces, newest first. */
export const surfacesPageSchema = z
  .strictObject({ surfaces: z.array(listedSurfaceSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'SurfacesPage' })
/** Response of GET /v3/surfaces. */
export type SurfacesPage = z.infer<typeof surfacesPageSchema>

/** Scopes of secret keys (docs/api/credentials.md#credentials). */
export const SECRET_KEY_SCOPES = ['release:write'] as const
const SURFACE_KEY_SCOPES_MAX = 10
const SCOPE_SHOWN_MAX_CHARACTERS = 64
const scopeRule = `must be a scope of secret keys: ${SECRET_KEY_SCOPES.join(', ')}`
const scopeSchema = z.enum(SECRET_KEY_SCOPES, {
  error: ({ input }) =>
    typeof input === 'string'
      ? `${scopeRule}; not ${JSON.stringify(input.slice(0, SCOPE_SHOWN_MAX_CHARACTERS))}`
      : scopeRule,
})
const secondsUntilExpiration = keyLifetimeSchema.optional()
const keyName = textOf(1, 120).optional()

const quota = z.int().min(1).max(QUOTA_MAX)

/** Quotas of a key of a surface (docs/api/credentials.md#quotas). */
const quotasSchema = exactObject({
  requestsPerSecond: quota.optional().meta({ description: 'Requests a second.' }),
  bytesPerSecond: quota.optional().meta({ description: 'Bytes of bodies a second, as sent.' }),
  bytesPerDay: quota.optional().meta({ description: 'Bytes of bodies a day (UTC), as sent.' }),
}).meta({ id: 'KeyQuotas', description: 'Limits of one key. One that is absent is not limited.' })

/** The quotas of a key, as they are shown. */
const shownQuotasSchema = z
  .strictObject(quotasSchema.shape)
  .meta({ id: 'ShownKeyQuotas', description: 'Limits of a key.' })

const quotasChangeSchema = exactObject({
  requestsPerSecond: quota.nullable().optional(),
  bytesPerSecond: quota.nullable().optional(),
  bytesPerDay: quota.nullable().optional(),
}).meta({ description: 'Quotas to change. Null removes one, an absent one stays.' })

const ALLOWED_ORIGINS_MAX = 50
const ORIGIN_MAX_CHARACTERS = 255
/** Rule of an allowed origin, for messages. */
export const ORIGIN_RULE =
  'must be an origin such as https://shop.example, or https://*.shop.example for every host below'
const originPatternSchema = textOf(1, ORIGIN_MAX_CHARACTERS).refine(isOriginPattern, ORIGIN_RULE)

/** Origins whose pages may use a public key (docs/api/credentials.md#allowed-origins). */
const allowedOriginsSchema = listOf(originPatternSchema, ALLOWED_ORIGINS_MAX, 'must be an array of origins')
  .refine(origins => origins.length > 0, 'must have at least one origin: null removes the rule')
  .meta({ minItems: 1, description: 'Requests with another Origin are refused. Requests without one pass.' })

/** Body of POST /v3/surfaces/{surfaceId}/keys. */
export const createSurfaceKeySchema = z
  .discriminatedUnion('kind', [
    exactObject({
      kind: z.literal('public'),
      name: keyName,
      scopes: z.never('must be left out: a public key has none').optional(),
      secondsUntilExpiration,
      quotas: quotasSchema.optional(),
      allowedOrigins: allowedOriginsSchema.optional(),
    }),
    exactObject({
      kind: z.literal('secret'),
      name: keyName,
      scopes: listOf(scopeSchema, SURFACE_KEY_SCOPES_MAX, 'must be an array of scopes'),
      secondsUntilExpiration,
      quotas: quotasSchema.optional(),
    }),
  ])
  .meta({ id: 'CreateSurfaceKeyRequest' })
/** Body of POST /v3/surfaces/{surfaceId}/keys. */
export type CreateSurfaceKey = z.infer<typeof createSurfaceKeySchema>

/** Body of PATCH /v3/surfaces/{surfaceId}/keys/{keyId}. */
export const updateSurfaceKeySchema = exactObject({
  quotas: quotasChangeSchema.nullable().optional().meta({ description: 'Null removes all quotas.' }),
  allowedOrigins: allowedOriginsSchema.nullable().optional().meta({ description: 'Null allows every origin.' }),
})
  .refine(change => Object.keys(change).length > 0, 'must have at least one field')
  .meta({ id: 'UpdateSurfaceKeyRequest', minProperties: 1 })
/** Body of PATCH /v3/surfaces/{surfaceId}/keys/{keyId}. */
export type UpdateSurfaceKey = z.infer<typeof updateSurfaceKeySchema>

/** Id of a key of a surface. */
export const surfaceKeyIdSchema = z.string().regex(/^key_[0-9a-z]{1,64}$/)
const kindSchema = z.enum(['public', 'secret'])

/** Response of POST /v3/surfaces/{surfaceId}/keys, the only one with the text of a secret key. */
export const surfaceKeyCreatedSchema = z.strictObject({
  key: z
    .strictObject({
      id: surfaceKeyIdSchema,
      kind: kindSchema,
      name: z.string().optional(),
      secret: z.string().meta({ description: 'The text of the key, of either kind.' }),
      scopes: z.array(scopeSchema).optional().meta({ description: 'Present for a secret key.' }),
      expiresAt,
      quotas: shownQuotasSchema.optional(),
      allowedOrigins: z.array(z.string()).optional(),
    })
    .meta({ id: 'NewSurfaceKey' }),
})
/** Response of POST /v3/surfaces/{surfaceId}/keys. */
export type SurfaceKeyCreated = z.infer<typeof surfaceKeyCreatedSchema>

/** States of the API key that made a key of a surface (docs/api/credentials.md#makers). */
export const MAKER_STATES = ['active', 'revoked', 'expired', 'suspended', 'removed'] as const
const makerSchema = z
  .strictObject({
    userId: z.string(),
    apiKeyId: apiKeyIdSchema.nullable().meta({ description: 'Null if the user did not use an API key.' }),
    apiKeyState: z.enum(MAKER_STATES).nullable().meta({
      description: 'A secret key works only while this is `active` or null. A public key stays.',
    }),
  })
  .meta({ description: 'Who created a key.' })

/** The use of a key, in lists. */
const keyUseSchema = z
  .strictObject({ lastUsedAt: instant.nullable(), requestsToday: z.int().min(0) })
  .meta({ id: 'KeyUse', description: 'Days are in UTC.' })

/** A key of a surface. A secret key is without its text. */
const listedSurfaceKeySchema = z
  .strictObject({
    id: surfaceKeyIdSchema,
    kind: kindSchema,
    name: z.string(),
    publicKey: z.string().nullable(),
    prefix: z.string().max(6).meta({ description: 'The prefix of its kind, and at most 3 further characters.' }),
    scopes: z.array(z.string()),
    createdAt: instant,
    expiresAt,
    revokedAt,
    createdBy: makerSchema.nullable().meta({ description: 'Null for a key that an operator created.' }),
    usage: keyUseSchema,
    quotas: shownQuotasSchema.optional(),
    allowedOrigins: z.array(z.string()).optional(),
  })
  .meta({ id: 'SurfaceKey' })
/** A key of a surface. A secret key is without its text. */
export type ListedSurfaceKey = z.infer<typeof listedSurfaceKeySchema>

/** Response of PATCH /v3/surfaces/{surfaceId}/keys/{keyId}. */
export const surfaceKeyUpdatedSchema = z.strictObject({ key: listedSurfaceKeySchema })
/** Response of PATCH /v3/surfaces/{surfaceId}/keys/{keyId}. */
export type SurfaceKeyUpdated = z.infer<typeof surfaceKeyUpdatedSchema>

/** Response of GET /v3/surfaces/{surfaceId}/keys, newest first. Includes revoked and expired keys. */
export const surfaceKeysPageSchema = z
  .strictObject({ keys: z.array(listedSurfaceKeySchema), nextCursor: nextCursorSchema })
  .meta({ id: 'SurfaceKeysPage' })
/** Response of GET /v3/surfaces/{surfaceId}/keys. */
export type SurfaceKeysPage = z.infer<typeof surfaceKeysPageSchema>

const KNOWN_PERMISSIONS = `one of ${PERMISSIONS.join(', ')}`

/** Permissions that a request gives to a member or to an API key. */
export const grantedPermissionsSchema = listOf(
  z.enum(PERMISSIONS).meta({ id: 'GrantedPermission' }),
  100,
  'must be an array of permissions',
)

/** Body of POST /v3/workspaces/{workspaceSlug}/api-keys (docs/api/workspaces.md#create-key). */
export const createWorkspaceKeySchema = exactObject({
  idempotencyKey: uuidSchema.optional().meta({
    description:
      'A new UUID for every key; the same one when the request is repeated. The header `Idempotency-Key` does the same.',
  }),
  name: textOf(1, 120).default('API key'),
  scopes: grantedPermissionsSchema
    .refine(scopes => scopes.length > 0, `must have at least ${KNOWN_PERMISSIONS}`)
    .meta({ minItems: 1, description: 'The permissions of the key.' }),
  secondsUntilExpiration: keyLifetimeSchema,
}).meta({ id: 'CreateWorkspaceKeyRequest' })
/** Body of POST …/api-keys. */
export type CreateWorkspaceKey = z.infer<typeof createWorkspaceKeySchema>

/** Response of POST …/api-keys. Only this response, and its repetitions within 24 h, contain the secret. */
export const workspaceKeyCreatedSchema = z.strictObject({
  apiKey: z
    .strictObject({
      id: apiKeyIdSchema,
      name: z.string(),
      scopes: z.array(permissionSchema),
      createdAt: instant,
      expiresAt,
      secret: z.string().meta({ description: 'The value of the key. No other response contains it.' }),
    })
    .meta({ id: 'NewWorkspaceKey' }),
})
/** Response of POST …/api-keys. */
export type WorkspaceKeyCreated = z.infer<typeof workspaceKeyCreatedSchema>

/** A workspace API key, without its secret. */
const listedWorkspaceKeySchema = z
  .strictObject({
    id: apiKeyIdSchema,
    name: z.string(),
    prefix: z.string().max(6).meta({ description: '`wk_` and at most 3 further characters.' }),
    scopes: z.array(permissionSchema),
    createdBy: shownActorSchema,
    createdAt: instant,
    expiresAt,
    revokedAt,
    usage: keyUseSchema,
  })
  .meta({ id: 'WorkspaceKey' })
/** A workspace API key, without its secret. */
export type ListedWorkspaceKey = z.infer<typeof listedWorkspaceKeySchema>

/** Response of GET /v3/workspaces/{workspaceSlug}/api-keys, newest first. Includes revoked and expired keys. */
export const workspaceKeysPageSchema = z
  .strictObject({ apiKeys: z.array(listedWorkspaceKeySchema), nextCursor: nextCursorSchema })
  .meta({ id: 'WorkspaceKeysPage' })
/** Response of GET …/api-keys. */
export type WorkspaceKeysPage = z.infer<typeof workspaceKeysPageSchema>

/** Response to every deletion and revocation. */
export const okSchema = z.strictObject({ ok: z.literal(true) }).meta({ id: 'Done' })
