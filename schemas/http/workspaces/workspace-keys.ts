import { z } from 'zod'
import { permissionSchema } from '../../records/directory.ts'
import { exactObject } from '../json-object.ts'
import { nextCursorSchema } from '../page.ts'
import { textOf, uuidSchema } from '../sessions/session-id.ts'
import { keyLifetimeSchema } from './key-lifetime.ts'

const SCOPES_MAX = 100
const instant = z.iso.datetime()

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
    .max(SCOPES_MAX, `must have at most ${SCOPES_MAX} items`)
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
