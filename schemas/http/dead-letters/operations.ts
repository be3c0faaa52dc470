import { z } from 'zod'
import { MANAGER, MANAGING_READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { PermittedOperation } from '../operation.ts'
import { letterChangeProblems, lettersProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import {
  letterAnswerSchema,
  letterIdSchema,
  lettersPageSchema,
  lettersPurgedSchema,
  lettersReplayedSchema,
  listLettersQuerySchema,
  purgeLettersSchema,
  replayLettersSchema,
} from './schemas.ts'

const letterPath = z.object({
  letterId: letterIdSchema.meta({ description: 'The dead letter.', example: EXAMPLE.deadLetterId }),
})

/** Lists dead letters (docs/api/dead-letters.md#replay-letters). */
export const listDeadLetters: PermittedOperation = {
  operationId: 'listDeadLetters',
  method: 'GET',
  path: '/v3/dead-letters',
  service: 'operation',
  tag: 'dead-letters',
  summary: 'List the dead letters of the workspace, the last request first',
  permission: 'org:telemetry:read',
  credentials: MANAGING_READER,
  parameters: { query: listLettersQuerySchema },
  success: {
    status: 200,
    description: 'A page of dead letters.',
    contents: { 'application/json': { schema: lettersPageSchema, example: ANSWERS.listDeadLetters } },
  },
  problems: lettersProblems,
}

/** Reads a dead letter (docs/api/dead-letters.md#replay-letters). */
export const readDeadLetter: PermittedOperation = {
  operationId: 'readDeadLetter',
  method: 'GET',
  path: '/v3/dead-letters/:letterId',
  service: 'operation',
  tag: 'dead-letters',
  summary: 'Read a dead letter: its reason, what is stored of its request, and every attempt',
  permission: 'org:telemetry:read',
  credentials: MANAGING_READER,
  parameters: { path: letterPath },
  success: {
    status: 200,
    description: 'The dead letter.',
    contents: { 'application/json': { schema: letterAnswerSchema, example: ANSWERS.readDeadLetter } },
  },
  problems: lettersProblems,
}

/** Reads the body of a dead letter (docs/api/dead-letters.md#replay-letters). */
export const readDeadLetterBody: PermittedOperation = {
  operationId: 'readDeadLetterBody',
  method: 'GET',
  path: '/v3/dead-letters/:letterId/body',
  service: 'operation',
  tag: 'dead-letters',
  summary: 'Read the body of a request that could not be stored, byte for byte as it was sent',
  description:
    'The headers `x-letter-content-type` and `x-letter-content-encoding` have the type and the encoding of the request. The response is an attachment, and not decompressed.',
  permission: 'org:telemetry:read',
  credentials: MANAGING_READER,
  parameters: { path: letterPath },
  isLetterBody: true,
  success: {
    status: 200,
    description: 'The body as it was sent.',
    contents: { 'application/octet-stream': { example: 'the bytes of the request' } },
  },
  problems: lettersProblems,
}

/** Replays dead letters (docs/api/dead-letters.md#replay-letters). */
export const replayDeadLetters: PermittedOperation = {
  operationId: 'replayDeadLetters',
  method: 'POST',
  path: '/v3/dead-letters/replay',
  service: 'operation',
  tag: 'dead-letters',
  summary: 'Put requests that could not be stored back into their queues, each exactly once',
  description: 'One call does a part of the work. Call it again with `nextCursor` until that is null.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: {
      'application/json': { schema: replayLettersSchema, example: { filter: { reason: 'refused_by_clickhouse' } } },
    },
  },
  success: {
    status: 200,
    description: 'Done as far as counted.',
    contents: { 'application/json': { schema: lettersReplayedSchema, example: ANSWERS.replayDeadLetters } },
  },
  problems: letterChangeProblems,
}

/** Purges dead letters (docs/api/dead-letters.md#replay-letters). */
export const purgeDeadLetters: PermittedOperation = {
  operationId: 'purgeDeadLetters',
  method: 'POST',
  path: '/v3/dead-letters/purge',
  service: 'operation',
  tag: 'dead-letters',
  summary: 'Delete requests that could not be stored, with their bytes',
  description: 'One call does a part of the work. Call it again with `nextCursor` until that is null.',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: purgeLettersSchema, example: { ids: [EXAMPLE.deadLetterId] } } },
  },
  success: {
    status: 200,
    description: 'Done as far as counted.',
    contents: { 'application/json': { schema: lettersPurgedSchema, example: ANSWERS.purgeDeadLetters } },
  },
  problems: letterChangeProblems,
}
