import { z } from 'zod'
import { PROBLEMS, type ProblemCode } from '../http/problems.ts'
import { unknownRelease } from './jobs.ts'

const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

/**
 * Frame attributes of the queue `source-maps`: a part of a map, or a whole map for whose verdict the edge waits.
 * `attempt` names the wait. The bytes are the body.
 */
export const sourceMapJobSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('part'),
    slug: z.string(),
    isUnknown: unknownRelease,
    path: z.string(),
    part: z.number().int().min(0),
    sha256,
  }),
  z.object({
    kind: z.literal('single'),
    slug: z.string(),
    isUnknown: unknownRelease,
    path: z.string(),
    attempt: z.string(),
  }),
])
/** Frame attributes of the queue `source-maps`. */
export type SourceMapJob = z.infer<typeof sourceMapJobSchema>

/** Frame attributes of the queue `completions`. The body is the request as it was sent, in JSON. */
export const completionJobSchema = z.object({
  slug: z.string(),
  attempt: z.string(),
  /** SHA-256 of the body in hex. It names the record of this request. */
  digest: sha256,
})
/** Frame attributes of the queue `completions`. */
export type CompletionJob = z.infer<typeof completionJobSchema>

/** Version of the record of a completion. A worker leaves a record of a newer version to a newer worker. */
export const COMPLETION_RECORD_VERSION = 1

/** Record of an accepted completion. For 24 h after it is done, a repeated request gets the same response. */
export const completionRecordSchema = z.object({
  version: z.number().int().default(0),
  attempt: z.string(),
  /** Sequence number in the order of acceptance. It grows with the clock of Redis, so that it never restarts. */
  sequence: z.number().int().min(1),
  /** Absent while the completion is in progress. */
  fileCount: z.number().int().min(0).optional(),
  /** Sequence of an earlier completion with the same body, which another one has replaced. */
  repeats: z.number().int().min(1).optional(),
})
/** Record of an accepted completion. */
export type CompletionRecord = z.infer<typeof completionRecordSchema>

/** Verdict of a worker on a request whose client waits at an edge. */
export const verdictSchema = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), value: z.record(z.string(), z.json()) }),
  z.object({
    ok: z.literal(false),
    code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
    message: z.string(),
  }),
])
/** Verdict of a worker. */
export type Verdict = z.infer<typeof verdictSchema>
