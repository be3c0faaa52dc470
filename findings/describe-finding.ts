import type { ClickHouseClient } from '../clickhouse/client.ts'
import { type FindingKey, selectFindingVariants } from '../clickhouse/queries/attributes/membership.ts'
import {
  type OccurrenceRow,
  selectFinding,
  selectFindingFrames,
  selectFindingReach,
  selectLastOccurrences,
} from '../clickhouse/queries/findings/select-finding.ts'
import type { StoredFrame } from '../schemas/http/findings/schemas.ts'
import type { FindingOfWorkspace } from '../shared/directory/findings/activity.ts'
import { type FindingMerges, withMerged } from '../shared/directory/findings/finding-merges.ts'
import { isInApp } from '../shared/stacks/in-app.ts'
import { readStack } from '../shared/stacks/read-stack.ts'
import type { StackLink } from '../shared/stacks/stack.ts'

/** A finding as a message describes it. Absent texts are empty. */
export interface DescribedFinding {
  /** Its current id, if all of it has moved since. */
  readonly findingId: string
  readonly type: string
  readonly message: string
  readonly service: string
  readonly release: string
  readonly environment: string
  readonly surfaceId: string
  readonly occurrences: number
  /** In how many sessions it occurred, to about 1 %. */
  readonly sessions: number
  /** Whom of its identified users it concerned, to about 1 %: those of 100,000 sessions at most. */
  readonly people: number
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  /** The innermost frame of the application. */
  readonly frame: DescribedFrame | undefined
  /** The exceptions behind it, the immediate cause first. */
  readonly chain: readonly { readonly type: string; readonly message: string }[]
  /** The trace of the latest occurrence as 32 hex digits, its session, and when it occurred. */
  readonly traceId: string
  readonly sessionId: string
  readonly occurredMs: number
}

/** A frame, by its source where a source map resolves it. */
interface DescribedFrame {
  readonly function: string
  readonly file: string
  /** 0 where the stack names none. */
  readonly line: number
  /** The text of the line, where a source map has it. */
  readonly sourceLine: string
}

/** Longest message that is read of the latest occurrence. */
const MESSAGE_MAX = 1_024

/** Describes a finding by what is stored of it. Returns undefined if nothing is retained. Throws a TransientError. */
export async function describeFinding(
  client: ClickHouseClient,
  asked: FindingOfWorkspace,
  merges: FindingMerges,
  signal: AbortSignal,
): Promise<DescribedFinding | undefined> {
  const key = await keyOf(client, asked, merges, signal)
  const [row, reach, frames] = await Promise.all([
    selectFinding(client, key, signal),
    selectFindingReach(client, key, signal),
    selectFindingFrames(client, key, signal),
  ])
  if (row === undefined) return undefined
  const since = row.days[0].at(-1) ?? row.firstDay
  const [latest] = await selectLastOccurrences(client, key, { since, limit: 1, messageLength: MESSAGE_MAX }, signal)
  if (latest === undefined) return undefined
  const { links } = readStack(latest.stacktrace)
  const nanosToMs = (nanos: string) => Number(BigInt(nanos) / 1_000_000n)
  return {
    findingId: key.findingIds[0] ?? asked.findingId,
    ...textsOf(latest),
    release: latest.serviceVersion,
    environment: latest.environment,
    surfaceId: latest.surfaceId,
    occurrences: Number(row.occurrenceCount),
    sessions: Number(reach.sessionCount),
    people: Number(reach.peopleCount),
    firstSeenMs: nanosToMs(row.firstSeenUnixNano),
    lastSeenMs: nanosToMs(row.lastSeenUnixNano),
    frame: frameOf(frames?.frames, links),
    chain: links.slice(1).map(({ type, message }) => ({ type, message })),
    traceId: /^0*$/.test(latest.traceId) ? '' : latest.traceId,
    sessionId: latest.sessionId,
    occurredMs: nanosToMs(latest.occurredUnixNano),
  }
}

/** Returns the finding under its current id: the one that it was merged into, or that has its occurrences now. */
async function keyOf(
  client: ClickHouseClient,
  { workspaceId, findingId: asked }: FindingOfWorkspace,
  merges: FindingMerges,
  signal: AbortSignal,
): Promise<FindingKey> {
  const ids = (findingId: string) => withMerged(merges, [merges.get(findingId) ?? findingId])
  const key = { workspaceId, findingIds: ids(asked) }
  const { variantIds, current } = await selectFindingVariants(client, key, signal)
  if (variantIds?.length !== 0 || current === undefined) return { ...key, variantIds }
  const moved = { workspaceId, findingIds: ids(current) }
  return { ...moved, variantIds: (await selectFindingVariants(client, moved, signal)).variantIds }
}

function textsOf({ type, wholeMessage, message, serviceName }: OccurrenceRow) {
  return { type, message: wholeMessage || message, service: serviceName }
}

function frameOf(stored: string | undefined, links: readonly StackLink[]): DescribedFrame | undefined {
  const resolved = stored === undefined ? [] : (JSON.parse(stored) as StoredFrame[])
  const source = resolved.find(frame => isInApp('javascript', { module: '', ...frame }))
  if (source !== undefined) {
    const { function: name, file, line, sourceLine = '' } = source
    return { function: name, file, line, sourceLine }
  }
  const sent = links.flatMap(({ frames }) => frames).find(({ inApp }) => inApp)
  if (sent === undefined) return undefined
  return { function: sent.function, file: sent.file || sent.module, line: sent.line, sourceLine: '' }
}
