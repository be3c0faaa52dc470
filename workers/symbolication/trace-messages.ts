import type { OriginalPosition, Position } from './parsed-map.ts'

/** What the thread that owns the parsed maps is started with. */
export interface TraceThreadSettings {
  readonly cacheBytes: number
  readonly mapLimitBytes: number
}

/** Positions to be traced through one map; the bytes of the map only where the thread has said that it needs them. */
export interface TraceQuestion {
  readonly id: number
  readonly mapKey: string
  readonly positions: readonly Position[]
  readonly bytes?: Uint8Array
}

/** In the order of the positions. */
export type TraceAnswer = { readonly id: number } & (
  | { readonly kind: 'traced'; readonly originals: readonly (OriginalPosition | undefined)[] }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unusable'; readonly reason: string }
)
