/** A part of bytes, or a text in them. */
export interface Part {
  readonly start: number
  readonly end: number
}
