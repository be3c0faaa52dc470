import type { OriginalPosition, Position } from './parsed-map.ts'

/** Settings of the process that owns the parsed maps. */
export interface TraceSettings {
  readonly cacheBytes: number
  /** Memory of one parsed map. */
  readonly mapLimitBytes: number
  /** Time that a question may spend on finding the functions of sources. Further frames have no function name. */
  readonly indexingLimitMs: number
}

/** Positions to trace through one map. */
export interface TraceQuestion {
  readonly kind: 'question'
  readonly id: number
  readonly mapKey: string
  readonly positions: readonly Position[]
}

/**
 * Messages to the process. If it answers a question with `absent`, the map follows: `map` announces its size, and each
 * `bytes` has the next bytes. Another question drops a map that is not complete.
 */
export type TraceMessage =
  | TraceQuestion
  | { readonly kind: 'map'; readonly id: number; readonly size: number }
  | { readonly kind: 'bytes'; readonly id: number; readonly bytes: Uint8Array }

/** Sent once, when the process has started. */
export const READY = { kind: 'ready', id: 0 } as const

/** Answer to a TraceQuestion. `originals` are in the order of the positions; `absent` requests the bytes of the map. */
export type TraceAnswer = { readonly id: number } & (
  | { readonly kind: 'traced'; readonly originals: readonly (OriginalPosition | undefined)[] }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly reason: string }
)
