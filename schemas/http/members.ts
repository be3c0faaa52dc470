import { z } from 'zod'
import { permissionSchema, userIdSchema } from '../records/directory.ts'
import { READER, USER } from './credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from './example-values.ts'
import { emailSchema, exactObject, idempotencyHeader, textOf } from './fields.ts'
import { SMALL_BODY_BYTES } from './limits.ts'
import type { PermittedOperation } from './operation.ts'
import { nextCursorSchema, pageQuerySchema } from './page.ts'
import { callerProblems, IDEMPOTENCY_CONFLICT } from './problem-sets.ts'
import { grantedPermissionsSchema } from './workspaces/schemas.ts'

/** Body of POST /v3/members. */
export const addMemberSchema = exactObject({
  userId: userIdSchema.meta({
    description: 'The identity: the claim `sub` of the tokens with which the user signs in.',
  }),
  permissions: grantedPermissionsSchema,
  name: textOf(1, 120).optional().meta({ description: 'Shown to members of this workspace only.' }),
  email: emailSchema.optional().meta({
    description: 'Shown to members of this workspace only.',
  }),
}).meta({ id: 'AddMemberRequest' })

/** Body of PATCH /v3/members/{userId}. */
export const changeMemberSchema = exactObject({ permissions: grantedPermissionsSchema }).meta({
  id: 'ChangeMemberRequest',
})

/** A member of a workspace. */
const listedMemberSchema = z
  .strictObject({
    id: z.string().meta({ description: 'The user.' }),
    permissions: z.array(permissionSchema),
    name: z.string().optional(),
    email: z.string().optional(),
    invitedAt: z.iso.datetime().optional().meta({ description: 'Absent if an operator has added the member.' }),
  })
  .meta({ id: 'Member', description: 'A member of a workspace. Absent fields are left out.' })
/** A member of a workspace. */
export type ListedMember = z.infer<typeof listedMemberSchema>

/** Response of POST /v3/members and PATCH /v3/members/{userId}. */
const memberAnswerSchema = z.strictObject({ member: listedMemberSchema })
/** Response of POST /v3/members and PATCH /v3/members/{userId}. */
export type MemberAnswer = z.infer<typeof memberAnswerSchema>

/** Query of DELETE /v3/members/{userId}. */
export const removeMemberQuerySchema = z.object({
  keys: z.enum(['pass', 'revoke']).default('pass').meta({
    example: 'revoke',
    description:
      'The API keys and secret keys that the member has made: `pass` (the default) makes them keys of the caller, `revoke` ends them, as does who removes itself.',
  }),
})

/** Response of DELETE /v3/members/{userId}. */
const memberRemovedSchema = z
  .strictObject({
    ok: z.literal(true),
    keys: z
      .array(
        z.strictObject({
          kind: z.enum(['api', 'secret']),
          id: z.string(),
          name: z.string().optional(),
          surfaceId: z.string().optional().meta({ description: 'Present for a secret key.' }),
        }),
      )
      .meta({
        description: 'The keys that were passed on or revoked. Public keys stay.',
      }),
  })
  .meta({ id: 'MemberRemoved' })
/** Response of DELETE /v3/members/{userId}. */
export type MemberRemoved = z.infer<typeof memberRemovedSchema>

/** Response of GET /v3/members. */
export const membersPageSchema = z
  .strictObject({ members: z.array(listedMemberSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'MembersPage' })
/** Response of GET /v3/members. */
export type MembersPage = z.infer<typeof membersPageSchema>

const memberPath = z.object({
  userId: userIdSchema.meta({ description: 'The member.', example: EXAMPLE.memberId }),
})
const added = { userId: 'user_2c9d', permissions: ['org:findings:read', 'org:findings:write'], name: 'Ben' }
const member = {
  id: added.userId,
  permissions: added.permissions,
  name: added.name,
  invitedAt: EXAMPLE_TIMES.createdAt,
}
const removed = { ok: true, keys: [] } as const
const changed = { id: EXAMPLE.memberId, permissions: ['org:findings:read'] }

/** Lists members (docs/api/workspaces.md#members). */
export const listMembers: PermittedOperation = {
  operationId: 'listMembers',
  method: 'GET',
  path: '/v3/members',
  service: 'operation',
  tag: 'workspaces',
  summary: 'List the members of the workspace with their permissions',
  permission: 'org:members:read',
  credentials: READER,
  parameters: { query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of members.',
    contents: {
      'application/json': { schema: membersPageSchema, example: { members: [changed], nextCursor: null } },
    },
  },
  problems: callerProblems,
}

/** Adds a member (docs/api/workspaces.md#members). */
export const addMember: PermittedOperation = {
  operationId: 'addMember',
  method: 'POST',
  path: '/v3/members',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Invite a user by identity',
  description:
    'The user is a member at once, and can sign in with a token of this identity. The caller must have every permission in `permissions`.',
  permission: 'org:members:write',
  credentials: USER,
  parameters: { header: idempotencyHeader },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: addMemberSchema, example: added } },
  },
  success: {
    status: 201,
    description: 'Added, now or by an earlier request with the same permissions.',
    contents: { 'application/json': { schema: memberAnswerSchema, example: { member } } },
  },
  problems: [...callerProblems, IDEMPOTENCY_CONFLICT],
}

/** Changes the permissions of a member (docs/api/workspaces.md#members). */
export const changeMember: PermittedOperation = {
  operationId: 'changeMember',
  method: 'PATCH',
  path: '/v3/members/:userId',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Replace the permissions of a member',
  description:
    'The caller must have every permission that is added. To take one from another member, it must have all that the member has.',
  permission: 'org:members:write',
  credentials: USER,
  parameters: { path: memberPath },
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': { schema: changeMemberSchema, example: { permissions: changed.permissions } },
    },
  },
  success: {
    status: 200,
    description: 'The changed member.',
    contents: { 'application/json': { schema: memberAnswerSchema, example: { member: changed } } },
  },
  problems: callerProblems,
}

/** Removes a member (docs/api/workspaces.md#members). */
export const removeMember: PermittedOperation = {
  operationId: 'removeMember',
  method: 'DELETE',
  path: '/v3/members/:userId',
  service: 'operation',
  tag: 'workspaces',
  summary: 'Remove a member',
  description:
    'The caller must have every permission of the member. The last member with the permission `org:members:write` cannot be removed.',
  permission: 'org:members:write',
  credentials: USER,
  parameters: { path: memberPath, query: removeMemberQuerySchema },
  success: {
    status: 200,
    description: 'Removed.',
    contents: { 'application/json': { schema: memberRemovedSchema, example: removed } },
  },
  problems: callerProblems,
}
