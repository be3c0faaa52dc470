import type { ReadStack } from './stack.ts'

/** The frame that lists show below the title of a finding. */
interface TopFrame {
  readonly function: string
  readonly file: string
  /** 0 where the stack names none. */
  readonly line: number
}

const FUNCTION_MAX = 200
const FILE_MAX = 300

/**
 * Returns the innermost frame of the application of the first exception of a chain that has one, as it is stored: a line each with
 * the function, the file or module, and the number of the line. Names are cut, that of a file at its start. Empty without one.
 */
export function topFrameOf({ links }: ReadStack): string {
  for (const { frames } of links) {
    const found = frames.find(({ inApp }) => inApp)
    if (found === undefined) continue
    const { function: name, file, module, line } = found
    return `${name.slice(0, FUNCTION_MAX)}\n${(file || module).slice(-FILE_MAX)}\n${line}`.toWellFormed()
  }
  return ''
}

/** Reads a frame that `topFrameOf` has returned. Returns undefined for an empty text. */
export function readTopFrame(stored: string): TopFrame | undefined {
  if (stored === '') return undefined
  const [name = '', file = '', line] = stored.split('\n', 3)
  return { function: name, file, line: Number(line) }
}
