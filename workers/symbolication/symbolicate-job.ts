import { hash } from 'node:crypto'
import {
  type ReleaseRequest,
  type SymbolicationRequest,
  symbolicationRequestSchema,
} from '../../schemas/queues/symbolication.ts'
import { MIB } from '../../schemas/units.ts'
import { parseJson } from '../../shared/json/parse-json.ts'
import { type PayloadFrame, withJsonBody } from '../../shared/queue/payload-frame.ts'
import { describeError, PermanentError, TransientError } from '../../shared/runtime/errors.ts'
import type { Reason } from '../../shared/runtime/reason.ts'
import type { RefusedFrame } from '../queue/letter-moves.ts'
import { keepLetters } from '../queue/letter-quota.ts'
import { movesByWorkspace } from '../queue/moves.ts'
import type { LockedJob } from '../queue/payloads/payload-store.ts'
import { isFaultOfFrame, type JobDeps, processJob } from '../queue/process-frames.ts'
import { type ResolvedRelease, type ResolveReleaseDeps, resolveRelease } from './resolve-release.ts'
import { storeStacks } from './store-stacks.ts'
import { type ReceivedStack, type StackOwner, symbolicateStacks } from './symbolicate-stacks.ts'

/** Counters of one job. */
export interface SymbolicationStats {
  /** Stacks and releases that were requested. */
  readonly requests: number
  /** Stack frames that a source map could resolve. */
  readonly frames: number
  readonly resolvedFrames: number
  /** Variants of findings that were resolved again because maps of their release have arrived. */
  readonly variantsResolvedAgain: number
  /** Requests that are done in a later job, because their workspace had no time left. */
  readonly postponed: number
  readonly deadLettered: number
}

/** Dependencies of symbolicating a job. */
export interface SymbolicateJobDeps extends Omit<ResolveReleaseDeps, 'retryUntilStopped'>, JobDeps {
  /** Reports the counters of a job that this worker finished. */
  readonly onDone?: (stats: SymbolicationStats) => void
}

/**
 * Postponed requests are dropped while the queue has this backlog. It is half of what new requests may fill
 * (`SYMBOLICATION_BACKLOG_BYTES`), so that they never displace them. A stack that is dropped is requested again when its
 * variant recurs.
 */
const POSTPONED_BACKLOG_BYTES = 64 * MIB

interface ReadRequest {
  readonly index: number
  readonly payloadFrame: PayloadFrame
  readonly request: SymbolicationRequest
}

/**
 * Resolves the stacks of a job and stores their frames, then resolves the releases of the job again. The job is
 * finished when all of it is stored. Repeated after a crash, it adds nothing that was stored before.
 *
 * A workspace has a budget of time. Requests that are left out because of it move to a job of their own, which waits in the
 * queue, with growing delays, until its workspace has time again. Only jobs of version 0.1.0 have requests of several
 * workspaces.
 */
export async function symbolicateJob(deps: SymbolicateJobDeps, job: LockedJob): Promise<void> {
  const stats = await processJob(deps, job, async (payloadFrames, retry) => {
    const own = { ...deps, retryUntilStopped: retry }
    const { requests, refused } = readRequests(job.jobId, payloadFrames)
    waitForTime(deps, requests)
    const postponed: PayloadFrame[] = []
    const counts = {
      requests: payloadFrames.length,
      frames: 0,
      resolvedFrames: 0,
      variantsResolvedAgain: 0,
      postponed: 0,
      deadLettered: 0,
    }
    for (const group of stacksByOwner(requests)) {
      try {
        const { rows, moves, done } = await symbolicateStacks(own, group.owner, group.stacks)
        const part = done === group.stacks.length ? '' : `:${done}`
        const token = `${job.jobId}:${group.owner.workspaceId}:${group.owner.surfaceId}${part}`
        await storeStacks(own, group.owner, { rows, moves }, token)
        for (const { payloadFrame } of group.requests.slice(done)) postponed.push(payloadFrame)
        for (const row of rows) {
          counts.frames += row.frameCount
          counts.resolvedFrames += row.resolvedFrameCount
        }
      } catch (error) {
        const reason = reasonOf(error)
        for (const { index, payloadFrame } of group.requests) {
          refused.push({ jobId: job.jobId, index, frame: payloadFrame, reason })
        }
      }
    }
    for (const { index, payloadFrame, request } of requests) {
      if (request.kind !== 'release') continue
      try {
        const { variants, after } = await resolveOne(own, `${job.jobId}:${index}`, payloadFrame, request)
        counts.variantsResolvedAgain += variants
        if (after !== undefined) postponed.push(withJsonBody(payloadFrame, { ...request, after }))
      } catch (error) {
        refused.push({ jobId: job.jobId, index, frame: payloadFrame, reason: reasonOf(error) })
      }
    }
    counts.postponed = postponed.length
    counts.deadLettered = refused.length
    const letters = await keepLetters(deps.letterQuota, 'symbolication', job.jobId, refused)
    // The id has the same length at any depth.
    const later = `postponed-${hash('sha256', job.jobId).slice(0, 16)}`
    const moves = movesByWorkspace('symbolication', later, postponed, POSTPONED_BACKLOG_BYTES)
    return { result: counts, moves: [...letters.moves, ...moves] }
  })
  if (stats) deps.onDone?.(stats)
}

/** Returns why requests are refused. Rethrows an error that another attempt may not have. */
function reasonOf(error: unknown): Reason {
  if (error instanceof PermanentError) return { label: 'refused_by_clickhouse', detail: error.message }
  if (isFaultOfFrame(error)) return { label: 'decoder_fault', detail: describeError(error) }
  throw error
}

/** Throws a TransientError if the job has requests of one workspace only and this workspace has no time left. */
function waitForTime({ tracer }: SymbolicateJobDeps, requests: readonly ReadRequest[]): void {
  const [workspaceId, ...others] = new Set(requests.map(({ payloadFrame }) => payloadFrame.workspaceId))
  if (workspaceId === undefined || others.length > 0 || tracer.hasTime(workspaceId)) return
  throw new TransientError('the workspace has used its time for source maps')
}

function resolveOne(
  deps: ResolveReleaseDeps,
  token: string,
  payloadFrame: PayloadFrame,
  request: ReleaseRequest,
): Promise<ResolvedRelease> {
  const { workspaceId, surfaceId, receivedAtMs } = payloadFrame
  return resolveRelease(deps, { workspaceId, surfaceId }, { ...request, receivedAtMs, token })
}

function readRequests(
  jobId: string,
  payloadFrames: readonly PayloadFrame[],
): { requests: ReadRequest[]; refused: RefusedFrame[] } {
  const requests: ReadRequest[] = []
  const refused: RefusedFrame[] = []
  for (const [index, payloadFrame] of payloadFrames.entries()) {
    const request = symbolicationRequestSchema.safeParse(parseJson(payloadFrame.body.toString()))
    if (request.success) requests.push({ index, payloadFrame, request: request.data })
    else {
      const reason: Reason = { label: 'invalid_request', detail: `${request.error.issues[0]?.message}` }
      refused.push({ jobId, index, frame: payloadFrame, reason })
    }
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
    const { request, payloadFrame } = read
    if (request.kind !== 'stack') continue
    const { workspaceId, surfaceId, receivedAtMs } = payloadFrame
    const key = `${workspaceId} ${surfaceId}`
    const group = groups.get(key) ?? { owner: { workspaceId, surfaceId }, stacks: [], requests: [] }
    groups.set(key, group)
    group.stacks.push({ ...request, receivedAtMs })
    group.requests.push(read)
  }
  return groups.values()
}
