import { READER } from '../credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'
import type { PermittedOperation } from '../operation.ts'
import { pageQuerySchema } from '../page.ts'
import { workspaceListProblems } from '../problem-sets.ts'
import { changesPageSchema } from './schemas.ts'

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
  problems: workspaceListProblems,
}
