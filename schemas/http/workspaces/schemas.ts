import { z } from 'zod'
import { permissionSchema } from '../../records/directory.ts'
import { exactObject, textOf, uuidSchema } from '../fields.ts'
import { nextCursorSchema } from '../page.ts'

const instant = z.iso.datetime()

const LIFETIME_MAX_SECONDS = 100 * 365 * 86_400
const LIFETIME_RULE = `must be a whole number of seconds from 1 to ${LIFETIME_MAX_SECONDS}, or null for no expiry`

/** `secondsUntilExpiration` of a key (spec 2.10). A hundred years, so that its end is a date that can be written. */
export const keyLifetimeSchema = z
  .int({ error: issue => (issue.input === undefined ? 'is required: seconds, or null for no expiry' : LIFETIME_RULE) })
  .min(1, LIFETIME_RULE)
  .max(LIFETIME_MAX_SECONDS, LIFETIME_RULE)
  .nullable()
  .meta({ description: 'Seconds; null for no expiry.' })

export const surfaceIdSchema = z.string().regex(/^srf_[0-9a-z]{1,64}$/)

/** POST /v3/surfaces. */
export const createSurfaceSchema = exactObject({ name: textOf(1, 120) }).meta({ id: 'CreateSurfaceRequest' })
export type CreateSurface = z.infer<typeof createSurfaceSchema>

export const listedSurfaceSchema = z
  .strictObject({ id: surfaceIdSchema, name: z.string(), createdAt: z.iso.datetime() })
  .meta({ id: 'Surface', description: 'An application of a workspace: a web site, a server.' })
export type ListedSurface = z.infer<typeof listedSurfaceSchema>

export const surfaceCreatedSchema = z.strictObject({ surface: listedSurfaceSchema })

/** GET /v3/surfaces: the newest first. */
export const surfacesPageSchema = z
  .strictObject({ surfaces: z.array(listedSurfaceSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'SurfacesPage' })
export type SurfacesPage = z.infer<typeof surfacesPageSchema>

/** What a secret key may be for (spec section 5, rule 2). */
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
          .max(SURFACE_KEY_SCOPES_MAX, `must have at most ${SURFACE_KEY_SCOPES_MAX} items`),
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

const WORKSPACE_KEY_SCOPES_MAX = 100

/**
 * 4.10: POST /v3/workspaces/{workspaceSlug}/api-keys (spec 2.10). Scopes that nobody can grant pass here: they are
 * PERMISSION_DENIED, as those are that the caller lacks.
 */
export const createWorkspaceKeySchema = exactObject({
  idempotencyKey: uuidSchema.meta({ description: 'Made anew for every key; sent again with the same request.' }),
  name: textOf(1, 120),
  scopes: z
    .array(textOf(1, 64), {
      error: issue => (issue.input === undefined ? 'is required' : 'must be an array of permissions'),
    })
    .max(WORKSPACE_KEY_SCOPES_MAX, `must have at most ${WORKSPACE_KEY_SCOPES_MAX} items`)
    .meta({ description: 'The permissions that the key gets, of those that `Permission` names.' }),
  secondsUntilExpiration: keyLifetimeSchema,
}).meta({ id: 'CreateWorkspaceKeyRequest' })
export type CreateWorkspaceKey = z.infer<typeof createWorkspaceKeySchema>

export const apiKeyIdSchema = z.string().regex(/^key_[0-9a-z]{1,64}$/)

/** 201: the only answer with the secret, and every repeat of the request within 24 h. */
export const workspaceKeyCreatedSchema = z.strictObject({
  apiKey: z
    .strictObject({
      id: apiKeyIdSchema,
      name: z.string(),
      scopes: z.array(permissionSchema),
      createdAt: instant,
      expiresAt: instant.nullable(),
      secret: z.string().meta({ description: 'The value of the key. Only this answer has it.' }),
    })
    .meta({ id: 'NewWorkspaceKey' }),
})
export type WorkspaceKeyCreated = z.infer<typeof workspaceKeyCreatedSchema>

export const listedWorkspaceKeySchema = z
  .strictObject({
    id: apiKeyIdSchema,
    name: z.string(),
    prefix: z.string().max(6).meta({ description: '`wk_` and at most 3 characters behind it.' }),
    scopes: z.array(permissionSchema),
    createdBy: z.string().meta({ description: 'The user whose permissions bound those of the key.' }),
    createdAt: instant,
    expiresAt: instant.nullable(),
    revokedAt: instant.nullable(),
  })
  .meta({ id: 'WorkspaceKey' })
export type ListedWorkspaceKey = z.infer<typeof listedWorkspaceKeySchema>

/** GET /v3/workspaces/{workspaceSlug}/api-keys: the newest first, revoked and expired ones too. */
export const workspaceKeysPageSchema = z
  .strictObject({ apiKeys: z.array(listedWorkspaceKeySchema), nextCursor: nextCursorSchema })
  .meta({ id: 'WorkspaceKeysPage' })
export type WorkspaceKeysPage = z.infer<typeof workspaceKeysPageSchema>

/** The answer to everything that is deleted or revoked. */
export const okSchema = z.strictObject({ ok: z.literal(true) }).meta({ id: 'Done' })
