import type { StackRequest } from '../../schemas/queues/symbolication.ts'
import { MINUTE_MS } from '../../schemas/units.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/**
 * A move by another process is known after this time. All variants are looked up again at once, because a query for one costs as
 * much as a query for a hundred.
 */
const REFRESH_MS = 5 * MINUTE_MS
const KNOWN_LIMIT = 50_000
/** Variants that one query asks for. Further ones are stored as sent. If they belong to another finding, it has these rows too. */
const ASKED_LIMIT = 2_000

/** The finding that a variant belongs to. */
export interface Membership {
  readonly findingId: string
  /** The higher one holds. It is 0 for the finding as it was sent. */
  readonly rank: bigint
}

type NamedMembership = Membership & { readonly variantId: string }

/** A stack whose frames may decide on the finding of its variant. */
type NewStack = Omit<StackRequest, 'kind'> & Pick<PayloadFrame, 'workspaceId' | 'surfaceId' | 'receivedAtMs'>

/** Dependencies of the known findings. */
export interface KnownFindingsDeps {
  /** Returns the memberships of these variants, as hexadecimal digits, that are stored. */
  readonly selectMemberships: (
    variants: { readonly workspaceIds: readonly string[]; readonly variantIds: readonly string[] },
    signal: AbortSignal,
  ) => Promise<readonly NamedMembership[]>
  /** Reports the memberships that source maps decide on, one by one, and begins nothing after the signal. Never rejects. */
  readonly resolve: (
    stacks: readonly NewStack[],
    signal: AbortSignal,
    onMove: (move: NamedMembership) => void,
  ) => Promise<void>
  readonly logger: Logger
  readonly now?: () => number
  /** How long a batch may wait. */
  readonly deadlineMs: number
}

/** The findings of variants, as far as a process knows them. The batches of its pool share them. */
export class KnownFindings {
  readonly #deps: KnownFindingsDeps
  /** Undefined for a variant that belongs to its finding as sent. */
  #known = new Map<string, Membership | undefined>()
  #period = 0
  /** One batch asks at a time, so that one with the same new variants finds them known. */
  #turn = Promise.resolve()

  constructor(deps: KnownFindingsDeps) {
    this.#deps = deps
  }

  /**
   * Returns the memberships of variants that do not belong to their finding as sent. Asks for those that are not known, first for
   * what is stored, then the source maps of `requests`, which have the stacks of new variants. Returns what is known when the
   * deadline is over; results that come later are for the next batch. Never rejects.
   */
  async of(
    workspaceOf: ReadonlyMap<string, string>,
    requests: readonly PayloadFrame[],
  ): Promise<ReadonlyMap<string, Membership>> {
    const known = this.#current()
    if ([...workspaceOf.keys()].some(variantId => !known.has(variantId))) {
      const before = this.#turn
      this.#turn = this.#withinDeadline(async signal => {
        await before
        if (!signal.aborted) await this.#ask(known, workspaceOf, requests, signal)
      })
      await this.#turn
    }
    const found = new Map<string, Membership>()
    for (const variantId of workspaceOf.keys()) {
      const membership = known.get(variantId)
      if (membership !== undefined) found.set(variantId, membership)
    }
    return found
  }

  #current(): Map<string, Membership | undefined> {
    const period = Math.floor((this.#deps.now?.() ?? Date.now()) / REFRESH_MS)
    if (period !== this.#period || this.#known.size > KNOWN_LIMIT) this.#known = new Map()
    this.#period = period
    return this.#known
  }

  async #withinDeadline(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const deadline = new AbortController()
    const timer = setTimeout(() => {
      deadline.abort()
      resolve()
    }, this.#deps.deadlineMs)
    const done = work(deadline.signal).catch(error => {
      this.#deps.logger.warn(errorFields(error), 'exceptions are stored without asking for their findings')
    })
    await Promise.race([done, promise])
    clearTimeout(timer)
  }

  async #ask(
    known: Map<string, Membership | undefined>,
    workspaceOf: ReadonlyMap<string, string>,
    requests: readonly PayloadFrame[],
    signal: AbortSignal,
  ): Promise<void> {
    const { selectMemberships, resolve } = this.#deps
    const unknown = [...workspaceOf].filter(([variantId]) => !known.has(variantId)).slice(0, ASKED_LIMIT)
    if (unknown.length === 0) return
    const fresh = new Set(unknown.map(([variantId]) => variantId))
    const workspaceIds = [...new Set(unknown.map(([, workspaceId]) => workspaceId))]
    const stored = await selectMemberships({ workspaceIds, variantIds: [...fresh] }, signal)
    const keep = ({ variantId, findingId, rank }: NamedMembership) => {
      known.set(variantId, rank > 0n ? { findingId, rank } : undefined)
    }
    for (const variantId of fresh) known.set(variantId, undefined)
    for (const membership of stored) {
      keep(membership)
      fresh.delete(membership.variantId)
    }
    const stacks = fresh.size === 0 ? [] : requests.map(readStackOf).filter(({ variantId }) => fresh.has(variantId))
    if (stacks.length > 0 && !signal.aborted) await resolve(stacks, signal, keep)
  }
}

function readStackOf({ workspaceId, surfaceId, receivedAtMs, body }: PayloadFrame): NewStack {
  return { ...(JSON.parse(body.toString()) as StackRequest), workspaceId, surfaceId, receivedAtMs }
}
