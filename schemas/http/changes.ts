import { z } from 'zod'
import { CHANGE_ACTIONS } from '../records/change.ts'
import { READER } from './credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from './example-values.ts'
import { shownActorSchema } from './findings/work.ts'
import type { PermittedOperation } from './operation.ts'
import { nextCursorSchema, pageQuerySchema } from './page.ts'
import { callerProblems } from './problem-sets.ts'

/** A change of a workspace. */
const listedChangeSchema = z
  .strictObject({
    id: z.string(),
    createdAt: z.iso.datetime(),
    by: shownActorSchema,
    action: z.enum(CHANGE_ACTIONS).meta({
      description: 'Purges of dead letters and deletions of releases are recorded before they begin.',
    }),
    subject: z.string().meta({
      description: 'Id of the surface, key, user, release or erasure. Empty for a change of the workspace.',
    }),
    name: z.string().optional().meta({ description: 'The name of what was created.' }),
    permissions: z
      .array(z.string())
      .optional()
      .meta({ description: 'The permissions of the key or the member afterwards.' }),
  })
  .meta({ id: 'Change', description: 'A change of a workspace. Absent fields are left out.' })

/** Response of GET /v3/changes, newest first. */
export const changesPageSchema = z
  .strictObject({ changes: z.array(listedChangeSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'ChangesPage' })
/** Response of GET /v3/changes. */
export type ChangesPage = z.infer<typeof changesPageSchema>

const change = {
  id: 'chg_7b2e90d41c5f6a839e20',
  createdAt: EXAMPLE_TIMES.createdAt,
  by: { userId: EXAMPLE.userId, apiKeyId: null },
  action: 'surface-key.revoked',
  subject: EXAMPLE.surfaceKeyId,
}

/** Lists the changes of a workspace (docs/api/workspaces.md#changes). */
export const listChanges: PermittedOperation = {
  operationId: 'listChanges',
  method: 'GET',
  path: '/v3/changes',
  service: 'operation',
  tag: 'workspaces',
  summary: 'List who has created, changed, revoked, deleted, purged and erased what, newest first',
  permission: 'org:members:read',
  credentials: READER,
  parameters: { query: pageQuerySchema },
  success: {
    status: 200,
    description: 'A page of changes.',
    contents: {
      'application/json': { schema: changesPageSchema, example: { changes: [change], nextCursor: null } },
    },
  },
  problems: callerProblems,
}
