import { z } from 'zod'
import { PERMISSIONS, permissionSchema, userIdSchema } from '../../records/directory.ts'
import { exactObject, listOf, textOf } from '../fields.ts'
import { nextCursorSchema } from '../page.ts'

const permissionsSchema = listOf(
  z.enum(PERMISSIONS, { error: `must be one of ${PERMISSIONS.join(', ')}` }).meta({ id: 'GrantedPermission' }),
  100,
  { error: issue => (issue.input === undefined ? 'is required' : 'must be an array of permissions') },
)

/** Body of POST /v3/members. */
export const addMemberSchema = exactObject({
  userId: userIdSchema.meta({
    description: 'The identity: the claim `sub` of the tokens with which the user signs in.',
  }),
  permissions: permissionsSchema,
  name: textOf(1, 120).optional().meta({ description: 'Shown to members of this workspace only.' }),
  email: z.email('must be an email address').max(320).optional().meta({
    description: 'Shown to members of this workspace only.',
  }),
}).meta({ id: 'AddMemberRequest' })

/** Body of PATCH /v3/members/{userId}. */
export const changeMemberSchema = exactObject({ permissions: permissionsSchema }).meta({ id: 'ChangeMemberRequest' })

/** A member of a workspace. */
export const listedMemberSchema = z
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
export const memberAnswerSchema = z.strictObject({ member: listedMemberSchema })
/** Response of POST /v3/members and PATCH /v3/members/{userId}. */
export type MemberAnswer = z.infer<typeof memberAnswerSchema>

/** Response of GET /v3/members. */
export const membersPageSchema = z
  .strictObject({ members: z.array(listedMemberSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'MembersPage' })
/** Response of GET /v3/members. */
export type MembersPage = z.infer<typeof membersPageSchema>
