import type { PageLife } from './page-life.ts'
import type { SpooledRequest } from './request.ts'
import { type Destination, send, sendBeacon } from './send.ts'
import type { Spool } from './spool.ts'

/** A request that is to be sent. */
export type NewRequest = Omit<SpooledRequest, 'page' | 'order' | 'createdAtMs'>

/** Counts of the requests of this page. */
interface DeliveryCounts {
  sent: number
  acknowledged: number
  lost: number
}

interface DeliveryDeps {
  readonly destination: Destination
  /** Opens once, and may take a while. */
  readonly spool: Promise<Spool>
  readonly life: PageLife
  /** Called once if the service refuses the key. */
  readonly onKeyRefused: (status: number) => void
}

/** Bytes and requests that browsers let pages of an origin send after their end. Chromium has 64 KiB and Firefox nine. */
const LAST_BYTES = 60_000
const LAST_REQUESTS = 9
const FIRST_WAIT_MS = 1_000
const LONGEST_WAIT_MS = 60_000
const RESUME_EVERY_MS = 60_000
/** Without locks, what was written longer ago than this was left by a page that ended. */
const LEFT_AFTER_MS = 60_000
/** Receipts that `status` can look up. */
const MAX_RECEIPTS = 100
const SUPPORTS_KEEPALIVE = 'keepalive' in Request.prototype

/** Sends each request until the service has acknowledged or refused it. The next page sends the requests that this one cannot. */
export class Delivery {
  readonly counts: DeliveryCounts = { sent: 0, acknowledged: 0, lost: 0 }
  /** The newest ones, the last one last. */
  readonly receipts: string[] = []
  readonly #deps: DeliveryDeps
  readonly #waiting = new Set<SpooledRequest>()
  /** Requests that the browser sends after the end of the page. */
  readonly #last = new Set<SpooledRequest>()
  #order = 0
  #pumping: Promise<void> | undefined
  #waitMs = FIRST_WAIT_MS
  #wake: (() => void) | undefined
  #isStopped = false
  #isRefused = false
  #resumeTimer: ReturnType<typeof setInterval> | undefined

  constructor(deps: DeliveryDeps) {
    this.#deps = deps
    addEventListener('online', this.#onOnline)
    this.#resumeTimer = setInterval(() => void this.#resume(), RESUME_EVERY_MS)
    void deps.spool.then(() => this.#resume())
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Adds a request. Resolves when it would survive the page. */
  async add(added: NewRequest): Promise<void> {
    if (this.#isStopped) return
    const { spool, life } = this.#deps
    const request = { ...added, page: life.id, order: this.#order++, createdAtMs: Date.now() }
    this.counts.sent++
    this.#waiting.add(request)
    await life.isKnown
    const isKept = await (await spool).put(request)
    if (!isKept && this.#waiting.delete(request)) this.counts.lost++
    void this.#pump()
  }

  /** Adds the last requests of the page, and lets the browser send what there is after its end. */
  end(added: readonly NewRequest[]): void {
    for (const request of added) void this.add(request)
    let bytes = 0
    for (const request of this.#waiting) {
      if (this.#last.has(request)) continue
      bytes += request.body.length
      if (bytes > LAST_BYTES || this.#last.size >= LAST_REQUESTS) break
      if (!SUPPORTS_KEEPALIVE) {
        sendBeacon(this.#deps.destination, request)
        continue
      }
      this.#last.add(request)
      // The page may continue, when it was only hidden.
      void send(this.#deps.destination, request, true).then(outcome => {
        this.#last.delete(request)
        if (outcome.kind === 'acknowledged') void this.#settle(request, outcome.receipt)
      })
    }
  }

  /** Resolves when all requests are acknowledged, or wait for the network or the service. */
  async flush(): Promise<void> {
    await this.#deps.spool
    this.#wake?.()
    this.#wake = undefined
    await this.#pump()
  }

  /** Forgets what waits, here and in the spool. */
  async clear(): Promise<void> {
    this.#waiting.clear()
    await (await this.#deps.spool).clear()
  }

  /** Lets other pages send what this one has left. A browser keeps no page for "back" that holds a lock. */
  leave(): void {
    this.#deps.life.end()
  }

  /** Continues after `leave`, when the page is shown again. */
  resume(): void {
    this.#deps.life.begin()
    void this.flush()
  }

  stop(): void {
    this.#isStopped = true
    clearInterval(this.#resumeTimer)
    removeEventListener('online', this.#onOnline)
    this.#wake?.()
    this.#deps.life.end()
    void this.#deps.spool.then(spool => spool.close())
  }

  readonly #onOnline = () => {
    this.#waitMs = FIRST_WAIT_MS
    this.#wake?.()
    void this.#resume()
  }

  /** Sends what waits, one after the other, while the service accepts it. */
  #pump(): Promise<void> {
    if (this.#wake !== undefined) return Promise.resolve()
    this.#pumping ??= this.#sendAll().finally(() => {
      this.#pumping = undefined
    })
    return this.#pumping
  }

  async #sendAll(): Promise<void> {
    for (const request of this.#waiting) {
      if (this.#last.has(request)) continue
      if (!(await this.#attempt(request))) return
    }
  }

  /** Sends a request. Returns false if the next attempt has to wait. */
  async #attempt(request: SpooledRequest): Promise<boolean> {
    const outcome = await send(this.#deps.destination, request)
    if (outcome.kind === 'acknowledged') {
      this.#waitMs = FIRST_WAIT_MS
      await this.#settle(request, outcome.receipt)
      return true
    }
    if (outcome.kind === 'refused') {
      this.counts.lost++
      await this.#settle(request)
      if (outcome.status !== 401 && outcome.status !== 403) return true
      if (!this.#isRefused) this.#deps.onKeyRefused(outcome.status)
      this.#isRefused = true
      return false
    }
    // With jitter, because all pages lose the service at the same moment.
    const waitMs = Math.max(outcome.afterMs, this.#waitMs) * (1 + Math.random() / 4)
    this.#waitMs = Math.min(2 * this.#waitMs, LONGEST_WAIT_MS)
    if (!this.#isStopped) void this.#after(waitMs)
    return false
  }

  async #after(waitMs: number): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, waitMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#wake = undefined
    if (!this.#isStopped) await this.#pump()
  }

  async #settle(request: SpooledRequest, receipt?: string): Promise<void> {
    if (this.#waiting.delete(request) && receipt !== undefined) {
      this.counts.acknowledged++
      this.receipts.push(receipt)
      if (this.receipts.length > MAX_RECEIPTS) this.receipts.shift()
    }
    await (await this.#deps.spool).remove(request)
  }

  /** Sends what pages have left that do not live any more. One page of the origin does it at a time. */
  async #resume(): Promise<void> {
    const { spool, life, destination } = this.#deps
    if (this.#isStopped || (await spool).kind === 'memory') return
    await life.alone(async () => {
      const lives = await life.lives()
      const isLeft = ({ page, createdAtMs }: SpooledRequest) =>
        page !== life.id && (lives === undefined ? Date.now() - createdAtMs > LEFT_AFTER_MS : !lives.has(page))
      for (;;) {
        const left = await (await spool).left(isLeft)
        for (const request of left) {
          if (this.#isStopped) return
          const outcome = await send(destination, request)
          if (outcome.kind === 'later') return
          await (await spool).remove(request)
        }
        if (left.length === 0) return
      }
    })
  }
}
