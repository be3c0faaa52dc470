import { z } from 'zod'
import { queueNameSchema } from './names.ts'

const position = z.number().int().min(0)

/** Records of one request that are left out for the same reason (docs/api/dead-letters.md#dead-letters). */
const rejectedRecordsSchema = z.object({
  reason: z.string(),
  count: z.number().int().min(1),
  /**
   * Positions of the first of these records in the request, counted over all its resources and scopes. Empty for
   * `exceptions_over_limit` and `findings_over_limit`, whose records are stored without some of their occurrences.
   */
  indexes: z.array(position),
})
/** Records of one request that are left out for the same reason. */
export type RejectedRecords = z.infer<typeof rejectedRecordsSchema>

/**
 * Frame attributes of a dead letter: the job that contained the request, why it could not be stored, and what of it is
 * stored already.
 */
export const deadLetterSchema = z.object({
  queue: queueNameSchema,
  jobId: z.string(),
  /** Position of the request in the payload of that job. */
  index: position,
  reason: z.string(),
  /** When the request was refused, in Unix ms. */
  refusedAtMs: z.number(),
  /** Tables that contain the rows of the request, because another table refused its rows. A replay must skip them. */
  storedTables: z.array(z.string()),
  /** Records that are left out. If there are any, all other records of the request are stored. */
  rejected: z.array(rejectedRecordsSchema),
  /** Number of records of the request that are stored. */
  storedRecords: position,
  /** Frame attributes of the request, unchanged. */
  attributes: z.string(),
})
/** Frame attributes of a dead letter. */
export type DeadLetter = z.infer<typeof deadLetterSchema>

/** Outcome of a request that could not be stored: it is a dead letter, or it was replayed and is stored. */
const letterOutcomeSchema = z.enum(['dead', 'stored'])
/** Outcome of a request that could not be stored. */
export type LetterOutcome = z.infer<typeof letterOutcomeSchema>

/**
 * The dead letter of a request that is replayed. Its first member in the attributes of the frame is `replayed`
 * (`shared/queue/letters/replayed-letter.ts`), so that the worker that settles the request settles its letter too.
 */
export const replayedLetterSchema = deadLetterSchema
  .pick({
    queue: true,
    jobId: true,
    index: true,
    reason: true,
    storedTables: true,
    rejected: true,
    storedRecords: true,
  })
  .extend({
    /** How often the letter was replayed, this time included. */
    attempt: z.number().int().min(1),
    replayedAtMs: z.number(),
    objectKey: z.string(),
    offset: position,
    length: position,
    bodyBytes: position,
    sessionId: z.string(),
  })
/** The dead letter of a request that is replayed. */
export type ReplayedLetter = z.infer<typeof replayedLetterSchema>

/**
 * Frame body of the queue `dead-letter-index`: a stored dead letter, for its row in the table `dead_letters`. The frame has
 * the ids, the arrival and the receipt of the request.
 */
export const storedLetterSchema = deadLetterSchema.omit({ attributes: true }).extend({
  /** How often the letter was replayed; a letter has a row for each attempt, and 0 is the request as it was sent. */
  attempt: position.default(0),
  /** When it was replayed, in Unix ms; 0 for attempt 0. */
  replayedAtMs: z.number().default(0),
  outcome: letterOutcomeSchema.default('dead'),
  /** Key of the object that contains the letter; empty if the object store refuses the letter in every form. */
  objectKey: z.string(),
  /** Range of the letter in the object. */
  offset: position,
  length: position,
  /** Size of the body as it was sent. */
  bodyBytes: position,
  /** Session that the request belongs to; empty if it names none outside its body. */
  sessionId: z.string(),
})
/** A stored dead letter. */
export type StoredLetter = z.infer<typeof storedLetterSchema>
