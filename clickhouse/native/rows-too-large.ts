/** Thrown when the rows of one payload outgrow what may be held for it. */
export class RowsTooLarge extends Error {
  override readonly name = 'RowsTooLarge'
}
