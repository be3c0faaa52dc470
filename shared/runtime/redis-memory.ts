import type { Logger } from './logger.ts'

/** Follows how much of its memory a Redis uses, and warns when nothing protects its memory or its data. */
export class RedisMemory {
  readonly #logger: Logger
  readonly #store: string
  #fault: string | undefined

  /** `store` names the Redis in warnings. */
  constructor(logger: Logger, store: 'queues' | 'directory') {
    this.#logger = logger
    this.#store = store
  }

  /** Returns the used share of Redis' maxmemory, or 0 if it has no limit. `info` is the reply of INFO memory. */
  usedShare(info: string): number {
    const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1] ?? 0)
    const limit = Number(/^maxmemory:(\d+)/m.exec(info)?.[1] ?? 0)
    const fault = faultOf(limit, /^maxmemory_policy:(\S+)/m.exec(info)?.[1])
    if (fault !== undefined && fault !== this.#fault) this.#logger.warn({ store: this.#store }, fault)
    this.#fault = fault
    return limit === 0 ? 0 : used / limit
  }
}

function faultOf(limit: number, policy = 'noeviction'): string | undefined {
  if (limit === 0) return 'redis has no maxmemory: no request is refused before the machine has no memory left; set it'
  if (policy === 'noeviction') return undefined
  return `redis removes data when its memory is full (maxmemory-policy ${policy}): set noeviction`
}
