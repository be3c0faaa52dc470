import { z } from 'zod'
import { QUEUES, queueNameSchema } from '../queues/names.ts'
import { MANAGER, READER } from './credentials.ts'
import { EXAMPLE, EXAMPLE_TIMES } from './example-values.ts'
import { exactObject, listOf } from './fields.ts'
import { SMALL_BODY_BYTES } from './limits.ts'
import type { PermittedOperation } from './operation.ts'
import { cursorSchema, nextCursorSchema, pageQuerySchema } from './page.ts'
import { callerProblems } from './problem-sets.ts'

/** Id of a dead letter: `letters/letter-id.ts` defines its parts. */
const letterIdSchema = z.string().regex(/^dlt_[A-Za-z0-9_-]{15,296}$/, 'must be the id of a dead letter')

/**
 * States of a dead letter (docs/api/dead-letters.md#replay-letters).
 *
 * - dead: its request is not stored, or not with all its records
 * - replaying: it waits for a worker
 * - replayed: its request is stored
 */
const LETTER_STATES = ['dead', 'replaying', 'replayed'] as const

/** Reasons why a letter is not replayed or purged. `letters/replay-letters.ts` describes them. */
const SKIP_REASONS = ['replaying', 'replayed', 'purged', 'not_found', 'bytes_missing', 'not_replayable'] as const

const instant = z.iso.datetime({ offset: true })
const word = z.string().min(1).max(200)
const queue = z.enum(QUEUES)

/** Conditions on dead letters. Absent ones match all. */
const conditions = {
  state: z.enum(['dead', 'replayed']).optional().meta({
    description: 'Only letters in this state. `dead` includes those that are being replayed.',
    example: 'dead',
  }),
  queue: queue.optional().meta({ description: 'Only letters of this queue.', example: 'traces' }),
  surface: word
    .optional()
    .meta({ description: 'Only letters of the surface with this id.', example: EXAMPLE.surfaceId }),
  reason: word.optional().meta({ description: 'Only letters with this reason.', example: 'refused_by_clickhouse' }),
  from: instant
    .optional()
    .meta({ description: 'Only requests that arrived at or after this time.', example: EXAMPLE_TIMES.createdAt }),
  to: instant
    .optional()
    .meta({ description: 'Only requests that arrived before this time.', example: '2100-01-01T00:00:00Z' }),
}

/** Query of GET /v3/dead-letters. */
export const listLettersQuerySchema = pageQuerySchema.extend(conditions)
/** Query of GET /v3/dead-letters. */
export type ListLettersQuery = z.infer<typeof listLettersQuerySchema>

/** The most letters of one step. */
export const LETTERS_PER_STEP = 500

const selection = {
  ids: listOf(letterIdSchema, LETTERS_PER_STEP, 'must be an array of ids of dead letters').optional(),
  cursor: cursorSchema,
  limit: z
    .int()
    .min(1)
    .max(LETTERS_PER_STEP)
    .default(LETTERS_PER_STEP)
    .meta({ description: 'The maximum number of letters of one call.' }),
}
const filter = exactObject(conditions)

function hasOne({ ids, filter: given }: { ids?: unknown; filter?: unknown }): boolean {
  return (ids === undefined) !== (given === undefined)
}
const ONE_OF = { path: ['ids'], error: 'must be given, or filter, and not both' }

/** Body of POST /v3/dead-letters/replay. */
export const replayLettersSchema = exactObject({ ...selection, filter: filter.optional() }).refine(hasOne, ONE_OF)

/** Body of POST /v3/dead-letters/purge. */
export const purgeLettersSchema = exactObject({
  ...selection,
  filter: filter
    .refine(given => Object.keys(given).length > 0, 'must have at least one condition')
    .meta({ minProperties: 1 })
    .optional(),
}).refine(hasOne, ONE_OF)

const letter = {
  id: letterIdSchema,
  state: z.enum(LETTER_STATES),
  queue: queueNameSchema.meta({ description: 'The queue that refused the request.' }),
  surfaceId: z.string(),
  reason: z.string().meta({ description: 'Why it was refused: a name, such as `refused_by_clickhouse`.' }),
  receivedAt: z.iso.datetime().meta({ description: 'When the request arrived.' }),
  settledAt: z.iso.datetime().meta({ description: 'When it was refused, or stored, last.' }),
  bodyBytes: z.number().int().min(0).meta({ description: 'The size of the body as it was sent.' }),
  replays: z.number().int().min(0).meta({ description: 'How often the letter was replayed.' }),
}

/** A dead letter in a list. */
const letterSchema = z
  .strictObject(letter)
  .meta({ id: 'DeadLetter', description: 'A request that could not be stored.' })
/** A dead letter in a list. */
export type LetterEntry = z.infer<typeof letterSchema>

/** Response of GET /v3/dead-letters. */
const lettersPageSchema = z.strictObject({ deadLetters: z.array(letterSchema), nextCursor: nextCursorSchema })
/** Response of GET /v3/dead-letters. */
export type LettersAnswer = z.infer<typeof lettersPageSchema>

/** Response of GET /v3/dead-letters/{letterId}. */
const letterAnswerSchema = z.strictObject({
  deadLetter: z
    .strictObject({
      ...letter,
      detail: z.string().optional().meta({ description: 'Details of the reason.' }),
      contentType: z.string().optional().meta({ description: 'Absent if the bytes are gone.' }),
      contentEncoding: z.string().optional().meta({ description: 'Absent if the bytes are gone.' }),
      isReplayable: z.boolean().meta({ description: 'Whether a replay can store what is left.' }),
      storedTables: z.array(z.string()).meta({ description: 'Tables that have the rows of the request already.' }),
      storedRecords: z.number().int().min(0).meta({ description: 'Records of the request that are stored.' }),
      rejected: z
        .array(
          z.strictObject({
            reason: z.string(),
            count: z.number().int().min(1),
            indexes: z.array(z.number().int().min(0)).meta({ description: 'Positions of the first 1,000 of them.' }),
          }),
        )
        .meta({ description: 'Records of the request that are not stored, by reason.' }),
      attempts: z
        .array(
          z.strictObject({
            replayedAt: z.iso.datetime().optional().meta({ description: 'Absent for the request as it was sent.' }),
            outcome: z.enum(['dead', 'stored', 'pending']),
            settledAt: z.iso.datetime().optional(),
            reason: z.string().optional(),
          }),
        )
        .meta({ description: 'Every attempt to store the request, the first one as it was sent.' }),
    })
    .meta({ id: 'DeadLetterDetails', description: 'A request that could not be stored, and every attempt at it.' }),
})
/** Response of GET /v3/dead-letters/{letterId}. */
export type LetterAnswer = z.infer<typeof letterAnswerSchema>

const skipped = z
  .array(z.strictObject({ id: letterIdSchema, reason: z.enum(SKIP_REASONS) }))
  .meta({ description: 'Letters that this call has not changed.' })

/** Response of POST /v3/dead-letters/replay. */
const lettersReplayedSchema = z.strictObject({
  replayed: z.number().int().min(0).meta({ description: 'Letters that are back in their queues.' }),
  skipped,
  nextCursor: nextCursorSchema,
})
/** Response of POST /v3/dead-letters/replay. */
export type LettersReplayed = z.infer<typeof lettersReplayedSchema>

/** Response of POST /v3/dead-letters/purge. */
const lettersPurgedSchema = z.strictObject({
  purged: z.number().int().min(0).meta({ description: 'Letters that are gone.' }),
  skipped,
  nextCursor: nextCursorSchema,
})
/** Response of POST /v3/dead-letters/purge. */
export type LettersPurged = z.infer<typeof lettersPurgedSchema>

const LETTER = {
  id: EXAMPLE.deadLetterId,
  state: 'dead',
  queue: 'traces',
  surfaceId: EXAMPLE.surfaceId,
  reason: 'refused_by_clickhouse',
  receivedAt: EXAMPLE_TIMES.receivedAt,
  settledAt: '2026-09-21T14:13:21.577Z',
  bodyBytes: 512,
  replays: 0,
} as const

/** Responses to the examples of the operations, by operation. */
const ANSWERS = {
  listDeadLetters: { deadLetters: [LETTER], nextCursor: null },
  readDeadLetter: {
    deadLetter: {
      ...LETTER,
      contentType: 'application/x-protobuf',
      contentEncoding: 'identity',
      isReplayable: true,
      storedTables: [],
      storedRecords: 0,
      rejected: [],
      attempts: [{ outcome: 'dead', settledAt: LETTER.settledAt, reason: LETTER.reason }],
    },
  },
  replayDeadLetters: { replayed: 1, skipped: [], nextCursor: null },
  purgeDeadLetters: { purged: 1, skipped: [], nextCursor: null },
} as const

const letterPath = z.object({
  letterId: letterIdSchema.meta({ description: 'The dead letter.', example: EXAMPLE.deadLetterId }),
})

const letterRead = {
  method: 'GET',
  service: 'operation',
  tag: 'dead-letters',
  permission: 'org:telemetry:read',
  credentials: READER,
  problems: callerProblems,
} as const

const letterChange = {
  method: 'POST',
  service: 'operation',
  tag: 'dead-letters',
  permission: 'org:telemetry:admin',
  credentials: MANAGER,
  problems: callerProblems,
} as const

/** Lists dead letters (docs/api/dead-letters.md#replay-letters). */
export const listDeadLetters: PermittedOperation = {
  ...letterRead,
  operationId: 'listDeadLetters',
  path: '/v3/dead-letters',
  summary: 'List the dead letters of the workspace, the last request first',
  parameters: { query: listLettersQuerySchema },
  success: {
    status: 200,
    description: 'A page of dead letters.',
    contents: { 'application/json': { schema: lettersPageSchema, example: ANSWERS.listDeadLetters } },
  },
}

/** Reads a dead letter (docs/api/dead-letters.md#replay-letters). */
export const readDeadLetter: PermittedOperation = {
  ...letterRead,
  operationId: 'readDeadLetter',
  path: '/v3/dead-letters/:letterId',
  summary: 'Read a dead letter: its reason, what is stored of its request, and every attempt',
  parameters: { path: letterPath },
  success: {
    status: 200,
    description: 'The dead letter.',
    contents: { 'application/json': { schema: letterAnswerSchema, example: ANSWERS.readDeadLetter } },
  },
}

/** Reads the body of a dead letter (docs/api/dead-letters.md#replay-letters). */
export const readDeadLetterBody: PermittedOperation = {
  ...letterRead,
  operationId: 'readDeadLetterBody',
  path: '/v3/dead-letters/:letterId/body',
  summary: 'Read the body of a request that could not be stored, scrubbed by the rules of the workspace',
  description:
    'The headers `x-letter-content-type` and `x-letter-content-encoding` have the type and the encoding of the body. The response is an attachment, byte for byte as it was sent unless `x-letter-scrubbed` says that values were replaced.',
  parameters: { path: letterPath },
  isLetterBody: true,
  success: {
    status: 200,
    description: 'The body.',
    contents: { 'application/octet-stream': { example: 'the bytes of the request' } },
  },
}

/** Replays dead letters (docs/api/dead-letters.md#replay-letters). */
export const replayDeadLetters: PermittedOperation = {
  ...letterChange,
  operationId: 'replayDeadLetters',
  path: '/v3/dead-letters/replay',
  summary: 'Put requests that could not be stored back into their queues, each exactly once',
  description: 'One call does a part of the work. Call it again with `nextCursor` until that is null.',
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
}

/** Purges dead letters (docs/api/dead-letters.md#replay-letters). */
export const purgeDeadLetters: PermittedOperation = {
  ...letterChange,
  operationId: 'purgeDeadLetters',
  path: '/v3/dead-letters/purge',
  summary: 'Delete requests that could not be stored, with their bytes',
  description: 'One call does a part of the work. Call it again with `nextCursor` until that is null.',
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: { 'application/json': { schema: purgeLettersSchema, example: { ids: [EXAMPLE.deadLetterId] } } },
  },
  success: {
    status: 200,
    description: 'Done as far as counted.',
    contents: { 'application/json': { schema: lettersPurgedSchema, example: ANSWERS.purgeDeadLetters } },
  },
}
