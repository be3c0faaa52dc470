import type { Problem } from '../../schemas/http/problems.ts'
import type { KeyQuotas, SurfaceKey } from '../../schemas/records/directory.ts'
import { originMatcher } from '../../schemas/records/origin-pattern.ts'
import { DAY_MS, DAY_S } from '../../schemas/units.ts'
import { TokenBucket } from '../../shared/concurrency/token-bucket.ts'
import type { Header } from '../../shared/http/route.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'
import type { DailyBytes, DailyUsage } from './daily-usage.ts'

/** Limits of keys: the quotas, the origins that a key allows, and the lookups of keys that were not seen before. */
export const KEY_LIMITS = [
  'requestsPerSecond',
  'bytesPerSecond',
  'bytesPerDay',
  'allowedOrigins',
  'unseenKeys',
] as const
/** Name of a limit of keys. */
export type KeyLimit = (typeof KEY_LIMITS)[number]

/** The facts of a request's head that limits depend on. */
export interface LimitedHead {
  readonly origin: string | undefined
  /** Undefined for a chunked body and for no body. */
  readonly contentLength: number | undefined
}

/** The quotas of a key, and the origins that may use it. Only keys that have one of them have limits. */
export interface KeyLimits {
  /**
   * Decides on the head of a request and counts it. Returns PERMISSION_DENIED for an origin that the key does not allow,
   * or INGEST_BACKPRESSURE for a request over a quota.
   */
  refuseHead(head: LimitedHead): Problem | undefined
  /** Counts the bytes of a body that is complete, or returns INGEST_BACKPRESSURE. */
  refuseBody(bytes: number): Problem | undefined
  /** Returns the headers that state the quotas and what is left of them now; none for a key without quotas. */
  headers(): readonly Header[]
}

/** The most keys with limits that a process keeps count of. */
const MAX_LIMITED_KEYS = 50_000

/**
 * Creates the limits of keys. Counters live as long as the quotas of their key stay the same, although the record of the
 * key is read again every few seconds.
 */
export class LimitsOfKeys {
  readonly #usage: DailyUsage
  readonly #onRefused: (limit: KeyLimit) => void
  readonly #now: () => number
  readonly #limits = new Map<string, { readonly terms: string; readonly limits: KeyLimits }>()

  constructor(usage: DailyUsage, now: () => number = Date.now, onRefused: (limit: KeyLimit) => void = () => {}) {
    this.#usage = usage
    this.#onRefused = onRefused
    this.#now = now
  }

  /** Returns the limits of a key, or undefined if it has none. */
  of({ id, quotas, allowedOrigins }: SurfaceKey): KeyLimits | undefined {
    if (quotas === undefined && allowedOrigins === undefined) return undefined
    const terms = JSON.stringify([quotas, allowedOrigins])
    const known = this.#limits.get(id)
    if (known?.terms === terms) return known.limits
    const day = quotas?.bytesPerDay === undefined ? undefined : this.#usage.of(id)
    const limits = new QuotaLimits({ quotas: quotas ?? {}, allowedOrigins, day }, this.#now, this.#onRefused)
    setBounded(this.#limits, MAX_LIMITED_KEYS, id, { terms, limits })
    return limits
  }
}

interface Terms {
  readonly quotas: KeyQuotas
  readonly allowedOrigins: readonly string[] | undefined
  readonly day: DailyBytes | undefined
}

class QuotaLimits implements KeyLimits {
  readonly #quotas: KeyQuotas
  readonly #isAllowed: ((origin: string) => boolean) | undefined
  readonly #requests: TokenBucket | undefined
  readonly #bytes: TokenBucket | undefined
  readonly #day: DailyBytes | undefined
  /** Undefined without quotas. */
  readonly #policy: Header | undefined
  readonly #now: () => number
  readonly #onRefused: (limit: KeyLimit) => void

  constructor({ quotas, allowedOrigins, day }: Terms, now: () => number, onRefused: (limit: KeyLimit) => void) {
    const { requestsPerSecond, bytesPerSecond } = quotas
    this.#quotas = quotas
    this.#isAllowed = allowedOrigins && originMatcher(allowedOrigins)
    const bucket = (perSecond: number) => new TokenBucket({ capacity: perSecond, refillMs: 1_000 }, now)
    this.#requests = requestsPerSecond === undefined ? undefined : bucket(requestsPerSecond)
    this.#bytes = bytesPerSecond === undefined ? undefined : bucket(bytesPerSecond)
    this.#day = day
    this.#policy = policyOf(quotas)
    this.#now = now
    this.#onRefused = onRefused
  }

  refuseHead({ origin, contentLength = 0 }: LimitedHead): Problem | undefined {
    // Servers send no Origin: only browsers can be bound to one.
    if (origin !== undefined && this.#isAllowed?.(origin) === false) {
      this.#onRefused('allowedOrigins')
      return ORIGIN_NOT_ALLOWED
    }
    const waitMs = this.#requests?.waitMs(1) ?? 0
    if (waitMs > 0) return this.#overQuota('requestsPerSecond', waitMs)
    const refused = this.#refuseBytes(contentLength)
    // A request that is refused for its size counts as well: it has cost the service its head.
    this.#requests?.take(1)
    return refused
  }

  /** Bytes are counted when they are here: a length that is only announced would use up the quota of a key for nothing. */
  refuseBody(bytes: number): Problem | undefined {
    const refused = this.#refuseBytes(bytes)
    if (refused) return refused
    this.#bytes?.take(bytes)
    this.#day?.add(bytes)
    return undefined
  }

  headers(): readonly Header[] {
    if (this.#policy === undefined) return []
    const nowMs = this.#now()
    const { bytesPerDay } = this.#quotas
    const left = [
      this.#requests && leftOf('requestsPerSecond', this.#requests.left, 1),
      this.#bytes && leftOf('bytesPerSecond', this.#bytes.left, 1),
      this.#day &&
        bytesPerDay !== undefined &&
        leftOf('bytesPerDay', bytesPerDay - this.#day.used(nowMs), Math.ceil((DAY_MS - (nowMs % DAY_MS)) / 1_000)),
    ]
    return [this.#policy, ['ratelimit', left.filter(Boolean).join(', ')]]
  }

  #refuseBytes(bytes: number): Problem | undefined {
    const waitMs = this.#bytes?.waitMs(bytes) ?? 0
    if (waitMs > 0) return this.#overQuota('bytesPerSecond', waitMs)
    const { bytesPerDay } = this.#quotas
    if (this.#day === undefined || bytesPerDay === undefined) return undefined
    return this.#day.used(this.#now()) + bytes > bytesPerDay
      ? this.#overQuota('bytesPerDay', Number.POSITIVE_INFINITY)
      : undefined
  }

  #overQuota(name: keyof KeyQuotas, waitMs: number): Problem {
    this.#onRefused(name)
    return {
      code: 'INGEST_BACKPRESSURE',
      message: `the key is over its quota ${name} of ${this.#quotas[name]}; retry after the delay`,
      retryAfterSeconds: Math.min(MAX_RETRY_AFTER_S, Math.max(1, Math.ceil(waitMs / 1_000))),
    }
  }
}

/** Windows and units of the quotas, as parameters of `RateLimit-Policy` (docs/api/credentials.md#rate-limits). */
const WINDOWS: Readonly<Record<keyof KeyQuotas, string>> = {
  requestsPerSecond: 'w=1',
  bytesPerSecond: 'w=1;qu="content-bytes"',
  bytesPerDay: `w=${DAY_S};qu="content-bytes"`,
}

function policyOf(quotas: KeyQuotas): Header | undefined {
  const policies = (Object.keys(WINDOWS) as (keyof KeyQuotas)[]).flatMap(name =>
    quotas[name] === undefined ? [] : [`"${name}";q=${quotas[name]};${WINDOWS[name]}`],
  )
  return policies.length === 0 ? undefined : ['ratelimit-policy', policies.join(', ')]
}

/** Returns what is left of a quota, and the seconds until all of it is there again. */
function leftOf(name: keyof KeyQuotas, left: number, resetSeconds: number): string {
  return `"${name}";r=${Math.max(0, Math.floor(left))};t=${resetSeconds}`
}

/** The bound of Retry-After (docs/api/backpressure.md#backpressure). */
const MAX_RETRY_AFTER_S = 60

const ORIGIN_NOT_ALLOWED: Problem = {
  code: 'PERMISSION_DENIED',
  message: 'the header Origin must be one of the allowedOrigins of the public key',
}
