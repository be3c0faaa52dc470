import { z } from 'zod'
import { PROBLEMS, type ProblemCode } from '../http/problems.ts'

const sha256 = z.string().regex(/^[0-9a-f]{64}$/)

/**
 * Frame attributes of the queue `source-maps`: a part of a map (its bytes are the body), or a whole one that the edge
 * waits for (`attempt` names the wait).
 */
export const sourceMapJobSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('part'),
    slug: z.string(),
    path: z.string(),
    part: z.number().int().min(0),
    sha256,
  }),
  z.object({ kind: z.literal('single'), slug: z.string(), path: z.string(), attempt: z.string() }),
])
export type SourceMapJob = z.infer<typeof sourceMapJobSchema>

/** Frame attributes of the queue `completions`; the body is the request as it came, in JSON. */
export const completionJobSchema = z.object({
  slug: z.string(),
  attempt: z.string(),
  /** SHA-256 of the body: names the record of this request. */
  digest: sha256,
})
export type CompletionJob = z.infer<typeof completionJobSchema>

/** The record of an accepted completion, for 24 h: the same request again gets the same answer. */
export const completionRecordSchema = z.object({
  attempt: z.string(),
  /** Its place in the order of acceptance; grows with the clock of Redis, so that it never begins again. */
  sequence: z.number().int().min(1),
  /** Absent while it is being worked on. */
  fileCount: z.number().int().min(0).optional(),
})
export type CompletionRecord = z.infer<typeof completionRecordSchema>

/** What a worker has found of a request whose client waits at an edge. */
export const verdictSchema = z.discriminatedUnion('ok', [
  z.object({ ok: z.literal(true), value: z.record(z.string(), z.json()) }),
  z.object({
    ok: z.literal(false),
    code: z.enum(Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]]),
    message: z.string(),
  }),
])
export type Verdict = z.infer<typeof verdictSchema>
