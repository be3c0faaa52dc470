import type { StoredFrame } from '../../schemas/http/findings/schemas.ts'
import { isInApp } from '../stacks/in-app.ts'
import type { ReadStack, StackFrame } from '../stacks/stack.ts'

/** The most frames of a stack that are resolved and stored. */
export const MAPPED_FRAMES_MAX = 100

/** Returns a stack with the frames that source maps resolved. `stored` are its first frames, as they are stored. */
export function mapStack({ language, links }: ReadStack, stored: readonly StoredFrame[]): ReadStack {
  const left = [...stored]
  const mapFrame = (frame: StackFrame): StackFrame => {
    const found = left.shift()
    if (found?.resolved !== true) return frame
    const { function: name, file, line, column } = found
    const place = { function: name, file, line, column, module: '' }
    return { ...place, inApp: isInApp('javascript', place), text: frame.text }
  }
  return { language, links: links.map(link => ({ ...link, frames: link.frames.map(mapFrame) })) }
}
