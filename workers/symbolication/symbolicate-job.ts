import {
  type ReleaseRequest,
  type SymbolicationRequest,
  symbolicationRequestSchema,
} from '../../schemas/queues/symbolication.ts'
import { type RetryDeps, retryUntilStopped } from '../../shared/concurrency/retry.ts'
import { decodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { PermanentError } from '../../shared/runtime/errors.ts'
import { deadLetterPayload, type RefusedFrame } from '../batch/open-batch.ts'
import { type FinishJobDeps, finishJob } from '../queue/finish-job.ts'
import type { HeldJob, Move } from '../queue/payload-store.ts'
import { type ResolveReleaseDeps, resolveRelease } from './resolve-release.ts'
import { type ReceivedStack, type StackOwner, symbolicateStacks } from './symbolicate-stacks.ts'

/** What became of a job. */
export interface SymbolicationStats {
  /** Stacks and releases that were asked for. */
  readonly requests: number
  readonly frames: number
  readonly resolvedFrames: number
  /** Findings that were resolved again because maps of their release have come. */
  readonly findingsResolvedAgain: number
  readonly deadLettered: number
}

export interface SymbolicateJobDeps
  extends Omit<ResolveReleaseDeps, 'retryUntilStopped'>,
    Omit<RetryDeps, 'holdsLock'>,
    FinishJobDeps {
  /** Adds jobs for payloads that are in Redis already; jobs that exist are left alone. */
  readonly onDone?: (stats: SymbolicationStats) => void
}

interface ReadRequest {
  readonly index: number
  readonly frame: PayloadFrame
  readonly request: SymbolicationRequest
}

/**
 * Resolves the stacks of a job and stores their frames, then does what its releases ask for. The job is done when all of
 * it is stored; repeated after a crash, it adds nothing that was stored before.
 */
export async function symbolicateJob(deps: SymbolicateJobDeps, job: HeldJob): Promise<void> {
  const { payload } = await deps.store.look(job.jobId)
  if (payload === null) return
  const frames = decodePayload(payload)
  const trying = { ...deps, holdsLock: () => deps.store.holds([job]) }
  const own = {
    ...deps,
    retryUntilStopped: <T>(what: string, work: () => Promise<T>) => retryUntilStopped(trying, what, work),
  }
  const { requests, refused } = readRequests(job.jobId, frames)
  const stats = { requests: frames.length, frames: 0, resolvedFrames: 0, findingsResolvedAgain: 0, deadLettered: 0 }

  for (const group of stacksByOwner(requests)) {
    try {
      const rows = await symbolicateStacks(own, group.owner, group.stacks)
      const token = `${job.jobId}:${group.owner.workspaceId}:${group.owner.surfaceId}`
      await own.retryUntilStopped('store frames', () => deps.insertFrames(rows, token))
      for (const row of rows) {
        stats.frames += row.frameCount
        stats.resolvedFrames += row.resolvedFrameCount
      }
    } catch (error) {
      if (!(error instanceof PermanentError)) throw error
      const reason = `refused_by_clickhouse: ${error.message}`.slice(0, 1_000)
      for (const { index, frame } of group.requests) refused.push({ jobId: job.jobId, index, frame, reason })
    }
  }
  for (const { index, frame, request } of requests) {
    if (request.kind !== 'release') continue
    stats.findingsResolvedAgain += await resolveOne(own, `${job.jobId}:${index}`, frame, request)
  }

  stats.deadLettered = refused.length
  const moves: Move[] =
    refused.length === 0
      ? []
      : [{ queue: 'dead-letters', ...deadLetterPayload('symbolication', `dead-${job.jobId}`, refused) }]
  const finished = await finishJob(deps, job, { frames: frames.length, bytes: payload.length }, moves)
  if (finished) deps.onDone?.(stats)
}

function resolveOne(
  deps: ResolveReleaseDeps,
  token: string,
  frame: PayloadFrame,
  request: ReleaseRequest,
): Promise<number> {
  const { workspaceId, surfaceId, receivedAtMs } = frame
  return resolveRelease(deps, { workspaceId, surfaceId }, { ...request, receivedAtMs, token })
}

function readRequests(
  jobId: string,
  frames: readonly PayloadFrame[],
): { requests: ReadRequest[]; refused: RefusedFrame[] } {
  const requests: ReadRequest[] = []
  const refused: RefusedFrame[] = []
  for (const [index, frame] of frames.entries()) {
    const request = symbolicationRequestSchema.safeParse(parseJson(frame.body))
    if (request.success) requests.push({ index, frame, request: request.data })
    else refused.push({ jobId, index, frame, reason: `invalid_request: ${request.error.issues[0]?.message}` })
  }
  return { requests, refused }
}

interface StackGroup {
  readonly owner: StackOwner
  readonly stacks: ReceivedStack[]
  readonly requests: ReadRequest[]
}

function stacksByOwner(requests: readonly ReadRequest[]): Iterable<StackGroup> {
  const groups = new Map<string, StackGroup>()
  for (const read of requests) {
    const { request, frame } = read
    if (request.kind !== 'stack') continue
    const { workspaceId, surfaceId, receivedAtMs } = frame
    const key = `${workspaceId} ${surfaceId}`
    const group = groups.get(key) ?? { owner: { workspaceId, surfaceId }, stacks: [], requests: [] }
    groups.set(key, group)
    group.stacks.push({ ...request, receivedAtMs })
    group.requests.push(read)
  }
  return groups.values()
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined // said by the schema
  }
}
