/** Height of a row in pixels. All have the same, so that a position needs no measurement. */
export const ROW_HEIGHT = 26
/** Firefox cannot place anything below 17.9 million pixels. */
const HEIGHT_MAX = 15_000_000
/** Rows above and below the view that are made too, so that scrolling shows no gaps. */
const OVERSCAN = 8

/** The rows in view, and where they are in the content that is scrolled. */
interface Viewport {
  /** Height of the content in pixels. */
  readonly contentHeight: number
  readonly first: number
  /** After the last row. */
  readonly end: number
  /** Distance from the top of the content to the row with this index. */
  readonly topOf: (row: number) => number
}

/** Returns the rows in view. Where all rows are higher than a browser allows, the scroll bar moves faster than the rows. */
export function viewportOf(rowCount: number, scrollTop: number, viewHeight: number): Viewport {
  const fullHeight = rowCount * ROW_HEIGHT
  const contentHeight = Math.min(fullHeight, HEIGHT_MAX)
  const shift = scrollTop * (scaleOf(fullHeight, contentHeight, viewHeight) - 1)
  const offset = scrollTop + shift
  return {
    contentHeight,
    first: Math.max(0, Math.floor(offset / ROW_HEIGHT) - OVERSCAN),
    end: Math.min(rowCount, Math.ceil((offset + viewHeight) / ROW_HEIGHT) + OVERSCAN),
    topOf: row => row * ROW_HEIGHT - shift,
  }
}

/** Returns the scroll position that has a row in view: unchanged if it is, else with the row in the middle or at an edge. */
export function scrollTo(
  row: number,
  rowCount: number,
  scrollTop: number,
  viewHeight: number,
  align: 'nearest' | 'center',
): number {
  const fullHeight = rowCount * ROW_HEIGHT
  const scale = scaleOf(fullHeight, Math.min(fullHeight, HEIGHT_MAX), viewHeight)
  const offset = scrollTop * scale
  const top = row * ROW_HEIGHT
  if (top >= offset && top + ROW_HEIGHT <= offset + viewHeight) return scrollTop
  const above = align === 'center' ? (viewHeight - ROW_HEIGHT) / 2 : top < offset ? 0 : viewHeight - ROW_HEIGHT
  return Math.max(0, top - above) / scale
}

/** Returns how many pixels of rows a pixel of the scroll bar moves. */
function scaleOf(fullHeight: number, contentHeight: number, viewHeight: number): number {
  return fullHeight === contentHeight ? 1 : (fullHeight - viewHeight) / (contentHeight - viewHeight)
}
