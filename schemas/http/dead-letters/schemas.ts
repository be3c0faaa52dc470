import { z } from 'zod'
import { QUEUES, queueNameSchema } from '../../queues/names.ts'
import { EXAMPLE, EXAMPLE_TIMES } from '../example-values.ts'
import { exactObject, listOf } from '../fields.ts'
import { cursorSchema, nextCursorSchema, pageQuerySchema } from '../page.ts'

/** Id of a dead letter: `letters/letter-id.ts` defines its parts. */
export const letterIdSchema = z.string().regex(/^dlt_[A-Za-z0-9_-]{15,296}$/, 'must be the id of a dead letter')

/**
 * States of a dead letter (docs/api/dead-letters.md#replay-letters).
 *
 * - dead: its request is not stored, or not with all its records
 * - replaying: it waits for a worker
 * - replayed: its request is stored
 */
export const LETTER_STATES = ['dead', 'replaying', 'replayed'] as const

/** Reasons why a letter is not replayed or purged. `letters/replay-letters.ts` describes them. */
export const SKIP_REASONS = ['replaying', 'replayed', 'purged', 'not_found', 'bytes_missing', 'not_replayable'] as const

const instant = z.iso.datetime({ offset: true, error: 'must be an RFC 3339 time, such as 2026-11-21T10:00:00Z' })
const word = z.string().min(1, 'must not be empty').max(200, 'must have at most 200 characters')
const queue = z.enum(QUEUES, { error: `must be one of ${QUEUES.join(', ')}` })

/** Conditions on dead letters. Absent ones match all. */
const conditions = {
  state: z.enum(['dead', 'replayed'], { error: 'must be dead or replayed' }).optional().meta({
    description: 'Only letters in this state. `dead` includes those that are being replayed.',
    example: 'dead',
  }),
  queue: queue.optional().meta({ description: 'Only letters of this queue.', example: 'spans' }),
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
    .number({ error: 'must be a number' })
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(LETTERS_PER_STEP, `must be at most ${LETTERS_PER_STEP}`)
    .default(LETTERS_PER_STEP)
    .meta({ description: 'The maximum number of letters of one call.' }),
}
const filter = exactObject(conditions)

function hasOne({ ids, filter: given }: { ids?: unknown; filter?: unknown }): boolean {
  return (ids === undefined) !== (given === undefined)
}
const ONE_OF = { path: ['ids'], error: 'or "filter" must be given, and not both' }

/** Body of POST /v3/dead-letters/replay. */
export const replayLettersSchema = exactObject({ ...selection, filter: filter.optional() }).refine(hasOne, ONE_OF)

/** Body of POST /v3/dead-letters/purge. */
export const purgeLettersSchema = exactObject({
  ...selection,
  filter: filter.refine(given => Object.keys(given).length > 0, 'must have at least one condition').optional(),
}).refine(hasOne, ONE_OF)

const letter = {
  id: letterIdSchema,
  state: z.enum(LETTER_STATES),
  queue: queueNameSchema.meta({ description: 'The queue that refused the request.' }),
  surfaceId: z.string(),
  reason: z.string(),
  receivedAt: z.iso.datetime().meta({ description: 'When the request arrived.' }),
  settledAt: z.iso.datetime().meta({ description: 'When it was refused, or stored, last.' }),
  bodyBytes: z.number().int().min(0).meta({ description: 'The size of the body as it was sent.' }),
  replays: z.number().int().min(0).meta({ description: 'How often the letter was replayed.' }),
}

/** A dead letter in a list. */
export const letterSchema = z
  .strictObject(letter)
  .meta({ id: 'DeadLetter', description: 'A request that could not be stored.' })
/** A dead letter in a list. */
export type LetterEntry = z.infer<typeof letterSchema>

/** Response of GET /v3/dead-letters. */
export const lettersPageSchema = z.strictObject({ deadLetters: z.array(letterSchema), nextCursor: nextCursorSchema })
/** Response of GET /v3/dead-letters. */
export type LettersAnswer = z.infer<typeof lettersPageSchema>

/** Response of GET /v3/dead-letters/{letterId}. */
export const letterAnswerSchema = z.strictObject({
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
export const lettersReplayedSchema = z.strictObject({
  replayed: z.number().int().min(0).meta({ description: 'Letters that are back in their queues.' }),
  skipped,
  nextCursor: nextCursorSchema,
})
/** Response of POST /v3/dead-letters/replay. */
export type LettersReplayed = z.infer<typeof lettersReplayedSchema>

/** Response of POST /v3/dead-letters/purge. */
export const lettersPurgedSchema = z.strictObject({
  purged: z.number().int().min(0).meta({ description: 'Letters that are gone.' }),
  skipped,
  nextCursor: nextCursorSchema,
})
/** Response of POST /v3/dead-letters/purge. */
export type LettersPurged = z.infer<typeof lettersPurgedSchema>
