import { MANAGER, MANAGING_READER } from '../credentials.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { workspaceCreationProblems, workspaceProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { replaceRetentionSchema, retentionAnswerSchema } from './schemas.ts'

/** Reads how long data is kept (docs/api/retention.md#retention). */
export const readRetention: PermittedOperation = {
  operationId: 'readRetention',
  method: 'GET',
  path: '/v3/retention',
  service: 'operation',
  tag: 'retention',
  summary: 'Read how long each kind of data of the workspace is kept',
  permission: 'org:telemetry:read',
  credentials: MANAGING_READER,
  success: {
    status: 200,
    description: 'The retention of each kind of data.',
    contents: { 'application/json': { schema: retentionAnswerSchema, example: ANSWERS.readRetention } },
  },
  problems: workspaceProblems,
}

/** Replaces how long data is kept (docs/api/retention.md#retention). */
export const replaceRetention: PermittedOperation = {
  operationId: 'replaceRetention',
  method: 'PUT',
  path: '/v3/retention',
  service: 'operation',
  tag: 'retention',
  summary: 'Replace how long each kind of data of the workspace is kept',
  description:
    'A shorter retention deletes what is older, for good. `sessions` must be at least as long as `traces`, `logs`, `findings`, `replay` and `deadLetters`, defaults included.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: replaceRetentionSchema, example: { traces: 14, replay: 7 } } },
  },
  success: {
    status: 200,
    description: 'The retention after the change.',
    contents: { 'application/json': { schema: retentionAnswerSchema, example: ANSWERS.replaceRetention } },
  },
  problems: workspaceCreationProblems,
}
