/** The original position of a frame whose map has no source. */
export const ORIGINAL = {
  file: 'x.ts',
  line: 1,
  column: 1,
  function: 'f',
  name: undefined,
  sourceLine: undefined,
  sourceLines: undefined,
}
