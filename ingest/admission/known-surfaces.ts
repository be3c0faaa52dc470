import { setBounded } from '../../shared/memory/bounded-map.ts'
import { EXPRESS_COST, type RequestSurface, SurfaceShare, WorkspaceShare } from './surface-share.ts'

/** Surfaces and workspaces that are known at once. The one that was seen first is forgotten, with its history. */
const MAX_SURFACES = 20_000

/** The bounds of prices, so that no wrong entry can exclude a surface or make its requests free. */
const MIN_PRICE = 0.25
const MAX_PRICE = 64

/** Surfaces that a poll lists. The others count as having nothing. */
const LISTED_SURFACES = 256

/**
 * Surfaces that a poll lists while those beyond the first `LISTED_SURFACES` have more than this part of the queue: as many
 * as one workspace may have. So a workspace cannot hide its share among small ones.
 */
const MOST_LISTED_SURFACES = 10_000
const UNLISTED_PART = 1 / 16

/** The surfaces that have sent requests to one queue, with their workspaces and prices. */
export class KnownSurfaces {
  readonly #maxCost: number
  readonly #now: () => number
  readonly #surfaces = new Map<string, SurfaceShare>()
  readonly #workspaces = new Map<string, WorkspaceShare>()
  #prices = new Map<string, number>()
  /** Surfaces that Redis listed in the last poll. */
  #listed: SurfaceShare[] = []
  /** Surfaces with cost that was added since the last poll. */
  #added: SurfaceShare[] = []
  /** Cost of the surfaces beyond the first `LISTED_SURFACES` as of the last poll. */
  #unlistedCost = 0

  constructor(maxCost: number, now: () => number) {
    this.#maxCost = maxCost
    this.#now = now
  }

  /** The number of surfaces, those with the highest cost, that the next poll must list. */
  get listed(): number {
    return this.#unlistedCost > UNLISTED_PART * this.#maxCost ? MOST_LISTED_SURFACES : LISTED_SURFACES
  }

  /** Returns the share of a surface. */
  shareOf(surface: RequestSurface): SurfaceShare {
    const known = this.#surfaces.get(surface.surfaceId)
    if (known !== undefined && known.workspaceId === surface.workspaceId) return known
    const share = new SurfaceShare(surface, this.#workspace(surface.workspaceId), this.#now())
    share.price = this.#prices.get(share.member) ?? 1
    setBounded(this.#surfaces, MAX_SURFACES, surface.surfaceId, share)
    return share
  }

  /** Returns the share of the surface that a member of the sorted sets of the queue names. */
  shareOfMember(member: string): SurfaceShare {
    const end = member.indexOf('/')
    return this.shareOf({ workspaceId: member.slice(0, end), surfaceId: member.slice(end + 1) })
  }

  /** Adds cost to a surface until a poll includes it. */
  add(share: SurfaceShare, cost: number): void {
    if (share.added === 0) this.#added.push(share)
    share.added += cost
  }

  /** Notes what the poll that is about to be sent will include. */
  beginPoll(): void {
    for (const share of this.#added) share.addedAtPoll = share.added
  }

  /**
   * Takes the costs that a poll has listed: members and costs, alternately, of a queue with this cost. `seconds` is the time
   * since the last poll, or 0.
   */
  followShares(shares: readonly string[], polledCost: number, seconds: number): void {
    const before = new Map<SurfaceShare, number>()
    for (const share of [...this.#listed, ...this.#added]) before.set(share, share.polled + share.addedAtPoll)
    for (const share of before.keys()) {
      setPolled(share, 0)
      share.workspace.express = 0
    }
    this.#listed = []
    this.#unlistedCost = polledCost
    for (let i = 0; i + 1 < shares.length; i += 2) {
      const share = this.shareOfMember(shares[i] as string)
      setPolled(share, Math.max(0, Number(shares[i + 1])))
      this.#listed.push(share)
      if (!share.isBulk && share.polled <= EXPRESS_COST) share.workspace.express += share.polled
      if (this.#listed.length <= LISTED_SURFACES) this.#unlistedCost -= share.polled
    }
    this.#added = []
    for (const share of before.keys()) {
      share.workspace.outstanding -= share.addedAtPoll
      share.added -= share.addedAtPoll
      share.addedAtPoll = 0
      if (share.added > 0) this.#added.push(share)
    }
    if (seconds > 0) followDrains(before, seconds)
  }

  /** Sets the prices: members and prices, alternately. A surface without one has the price 1. */
  followPrices(prices: readonly string[]): void {
    for (const member of this.#prices.keys()) this.shareOfMember(member).price = 1
    this.#prices = new Map()
    for (let i = 0; i + 1 < prices.length; i += 2) {
      const member = prices[i] as string
      const price = Math.min(MAX_PRICE, Math.max(MIN_PRICE, Number(prices[i + 1])))
      this.#prices.set(member, price)
      this.shareOfMember(member).price = price
    }
  }

  #workspace(id: string): WorkspaceShare {
    const known = this.#workspaces.get(id)
    if (known !== undefined) return known
    const workspace = new WorkspaceShare()
    setBounded(this.#workspaces, MAX_SURFACES, id, workspace)
    return workspace
  }
}

/** Measures how fast surfaces and workspaces are drained, by what surfaces were expected to have before the poll. */
function followDrains(expected: ReadonlyMap<SurfaceShare, number>, seconds: number): void {
  const ofWorkspaces = new Map<WorkspaceShare, { before: number; after: number; done: number }>()
  for (const [{ workspace, drain, polled }, before] of expected) {
    const done = Math.max(0, before - polled)
    drain.follow({ before, after: polled, done }, seconds)
    const sum = ofWorkspaces.get(workspace) ?? { before: 0, after: 0, done: 0 }
    sum.before += before
    sum.after += polled
    sum.done += done
    ofWorkspaces.set(workspace, sum)
  }
  for (const [{ drain }, sum] of ofWorkspaces) drain.follow(sum, seconds)
}

function setPolled(share: SurfaceShare, cost: number): void {
  share.workspace.outstanding += cost - share.polled
  share.polled = cost
}
