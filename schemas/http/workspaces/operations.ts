import { z } from 'zod'
import { MANAGER, READER, USER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { idempotencyHeader } from '../fields.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { callerProblems, IDEMPOTENCY_CONFLICT } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import {
  apiKeyIdSchema,
  createSurfaceKeySchema,
  createSurfaceSchema,
  createWorkspaceKeySchema,
  okSchema,
  surfaceCreatedSchema,
  surfaceIdSchema,
  surfaceKeyCreatedSchema,
  surfaceKeyIdSchema,
  surfaceKeysPageSchema,
  surfaceKeyUpdatedSchema,
  surfacesPageSchema,
  updateSurfaceKeySchema,
  workspaceKeyCreatedSchema,
  workspaceKeysPageSchema,
} from './schemas.ts'

const surfacePath = z.object({
  surfaceId: surfaceIdSchema.meta({ description: 'The surface.', example: EXAMPLE.surfaceId }),
})
const surfaceKeyPath = surfacePath.extend({
  keyId: surfaceKeyIdSchema.meta({ description: 'The key.', example: EXAMPLE.surfaceKeyId }),
})
const workspacePath = z.object({
  workspaceSlug: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/)
    .meta({ description: 'The slug of the workspace.', example: EXAMPLE.workspaceSlug }),
})
const workspaceKeyPath = workspacePath.extend({
  apiKeyId: apiKeyIdSchema.meta({ description: 'The key.', example: EXAMPLE.apiKeyId }),
})
const done = {
  status: 200,
  description: 'Done, now or earlier.',
  contents: { 'application/json': { schema: okSchema, example: { ok: true } } },
} as const

/** Lists surfaces (docs/api/workspaces.md#surfaces). */
export const listSurfaces: PermittedOperation = {
  operationId: 'listSurfaces',
  method: 'GET',
  path: '/v3/surfaces',
  service: 'operation',
  tag: 'workspaces',
  summary: 'List the surfaces of the workspace, newest first',
  permission: 'org:surfaces:read',
  credentials: READER,
  parameters: { query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of surfaces.',
    contents: { 'application/json': { schema: surfacesPageSchema, example: ANSWERS.listSurfaces } },
  },
  problems: callerProblems,
}

/** Creates a surface (docs/api/workspaces.md#surfaces). */
export const createSurface: PermittedOperation = {
  operationId: 'createSurface',
  method: 'POST',
  path: '/v3/surfaces',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Create a surface',
  permission: 'org:surfaces:write',
  credentials: MANAGER,
  parameters: { header: idempotencyHeader },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: createSurfaceSchema, example: { name: 'Shop' } } },
  },
  success: {
    status: 201,
    description: 'Created.',
    contents: { 'application/json': { schema: surfaceCreatedSchema, example: ANSWERS.createSurface } },
  },
  problems: [...callerProblems, IDEMPOTENCY_CONFLICT],
}

/** Deletes a surface (docs/api/workspaces.md#surfaces). */
export const deleteSurface: PermittedOperation = {
  operationId: 'deleteSurface',
  method: 'DELETE',
  path: '/v3/surfaces/:surfaceId',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Delete a surface and revoke its keys',
  description: 'Data that the surface has sent is kept for the usual retention.',
  permission: 'org:surfaces:delete',
  credentials: MANAGER,
  parameters: { path: surfacePath },
  success: { ...done, description: 'Deleted.' },
  problems: callerProblems,
}

/** Lists the keys of a surface (docs/api/workspaces.md#surfaces). */
export const listSurfaceKeys: PermittedOperation = {
  operationId: 'listSurfaceKeys',
  method: 'GET',
  path: '/v3/surfaces/:surfaceId/keys',
  service: 'operation',
  tag: 'workspaces',
  summary: 'List the keys of a surface, newest first',
  permission: 'org:surfaces:read',
  credentials: READER,
  parameters: { path: surfacePath, query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of keys.',
    contents: { 'application/json': { schema: surfaceKeysPageSchema, example: ANSWERS.listSurfaceKeys } },
  },
  problems: callerProblems,
}

/** Creates a key of a surface (docs/api/workspaces.md#surfaces). */
export const createSurfaceKey: PermittedOperation = {
  operationId: 'createSurfaceKey',
  method: 'POST',
  path: '/v3/surfaces/:surfaceId/keys',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Create a public or secret key of a surface',
  description:
    'No other response contains the text of a secret key. A secret key requires `scopes`; a public key has none.',
  permission: 'org:surfaces:write',
  credentials: MANAGER,
  parameters: { path: surfacePath, header: idempotencyHeader },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': {
        schema: createSurfaceKeySchema,
        example: { kind: 'secret', scopes: ['release:write'], secondsUntilExpiration: 86_400 },
      },
    },
  },
  success: {
    status: 201,
    description: 'Created. The key works at once.',
    contents: { 'application/json': { schema: surfaceKeyCreatedSchema, example: ANSWERS.createSurfaceKey } },
  },
  problems: [...callerProblems, IDEMPOTENCY_CONFLICT],
}

/** Changes the quotas and the allowed origins of a key of a surface (docs/api/credentials.md#quotas). */
export const updateSurfaceKey: PermittedOperation = {
  operationId: 'updateSurfaceKey',
  method: 'PATCH',
  path: '/v3/surfaces/:surfaceId/keys/:keyId',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Change the quotas and the allowed origins of a key of a surface',
  description:
    'Fields that are left out stay as they are, null removes a limit. Edges apply the change within a second.',
  permission: 'org:surfaces:write',
  credentials: MANAGER,
  parameters: { path: surfaceKeyPath },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': {
        schema: updateSurfaceKeySchema,
        example: {
          quotas: { requestsPerSecond: 200, bytesPerDay: 10_000_000_000 },
          allowedOrigins: ['https://shop.example', 'https://*.shop.example'],
        },
      },
    },
  },
  success: {
    status: 200,
    description: 'The changed key.',
    contents: { 'application/json': { schema: surfaceKeyUpdatedSchema, example: ANSWERS.updateSurfaceKey } },
  },
  problems: callerProblems,
}

/** Revokes a key of a surface (docs/api/workspaces.md#surfaces). */
export const revokeSurfaceKey: PermittedOperation = {
  operationId: 'revokeSurfaceKey',
  method: 'DELETE',
  path: '/v3/surfaces/:surfaceId/keys/:keyId',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Revoke a key of a surface',
  description: 'The key stops working within a second.',
  permission: 'org:surfaces:delete',
  credentials: MANAGER,
  parameters: { path: surfaceKeyPath },
  success: done,
  problems: callerProblems,
}

/** Lists workspace API keys (docs/api/workspaces.md#list-keys). */
export const listWorkspaceKeys: PermittedOperation = {
  operationId: 'listWorkspaceKeys',
  method: 'GET',
  path: '/v3/workspaces/:workspaceSlug/api-keys',
  service: 'operation',
  tag: 'workspaces',
  summary: 'List the workspace API keys, newest first, without their secrets',
  permission: 'org:workspace_auth:write',
  credentials: USER,
  parameters: { path: workspacePath, query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of keys.',
    contents: { 'application/json': { schema: workspaceKeysPageSchema, example: ANSWERS.listWorkspaceKeys } },
  },
  problems: callerProblems,
}

/** Creates a workspace API key (docs/api/workspaces.md#create-key). */
export const createWorkspaceKey: PermittedOperation = {
  operationId: 'createWorkspaceKey',
  method: 'POST',
  path: '/v3/workspaces/:workspaceSlug/api-keys',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Create a workspace API key',
  description:
    'The caller must have every permission in `scopes`. At any moment the key has the permissions that are in its scopes and that its creator has. The same request with the same `idempotencyKey` returns the same key and secret for 24 h.',
  permission: 'org:workspace_auth:write',
  credentials: USER,
  parameters: { path: workspacePath, header: idempotencyHeader },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': {
        schema: createWorkspaceKeySchema,
        example: {
          idempotencyKey: '0f8b4c3e-52a7-4a52-9b1d-7c7a4f0c2d11',
          name: 'Terraform',
          scopes: ['org:surfaces:read', 'org:surfaces:write'],
          secondsUntilExpiration: null,
        },
      },
    },
  },
  success: {
    status: 201,
    description: 'Created, now or by an earlier identical request.',
    contents: { 'application/json': { schema: workspaceKeyCreatedSchema, example: ANSWERS.createWorkspaceKey } },
  },
  problems: [...callerProblems, IDEMPOTENCY_CONFLICT],
}

/** Revokes a workspace API key (docs/api/workspaces.md#revoke-key). */
export const revokeWorkspaceKey: PermittedOperation = {
  operationId: 'revokeWorkspaceKey',
  method: 'DELETE',
  path: '/v3/workspaces/:workspaceSlug/api-keys/:apiKeyId',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Revoke a workspace API key',
  permission: 'org:workspace_auth:write',
  credentials: USER,
  parameters: { path: workspaceKeyPath },
  success: done,
  problems: callerProblems,
}
