import type { OriginalPosition, Position } from './parsed-map.ts'

/** Settings of the thread that owns the parsed maps. */
export interface TraceThreadSettings {
  readonly cacheBytes: number
  readonly mapLimitBytes: number
}

/** Positions to trace through one map. The bytes of the map are sent only after the thread has requested them. */
export interface TraceQuestion {
  readonly id: number
  readonly mapKey: string
  readonly positions: readonly Position[]
  readonly bytes?: Uint8Array
}

/** Result of a TraceQuestion. `originals` are in the order of the positions; `absent` requests the bytes of the map. */
export type TraceAnswer = { readonly id: number } & (
  | { readonly kind: 'traced'; readonly originals: readonly (OriginalPosition | undefined)[] }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly reason: string }
)
