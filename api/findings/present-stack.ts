import {
  type FindingFrame,
  type FindingStack,
  LINK_MESSAGE_MAX,
  type StoredFrame,
} from '../../schemas/http/findings/schemas.ts'
import { isInApp } from '../../shared/stacks/in-app.ts'
import { readStack } from '../../shared/stacks/read-stack.ts'
import type { StackFrame } from '../../shared/stacks/stack.ts'
import type { SourceLink } from './source-link.ts'

/**
 * Describes the stack of a finding. `text` is as it was sent, empty if there is none. `stored` are the frames that source maps
 * resolved, as JSON, with the links to their sources. Without them, the frames are those of the exception that was reported.
 */
export function presentStack(
  text: string,
  stored: { readonly frames: string; readonly linkOf: SourceLink | undefined } | undefined,
): { frames: FindingFrame[]; stack?: FindingStack } {
  const { language, links } = readStack(text)
  const frames =
    stored === undefined
      ? (links[0]?.frames ?? []).map(asSent)
      : (JSON.parse(stored.frames) as StoredFrame[]).map(frame => {
          const inApp = isInApp('javascript', { module: '', ...frame })
          const sourceUrl = frame.resolved && inApp ? stored.linkOf?.(frame.file, frame.line) : undefined
          return { ...frame, inApp, ...(sourceUrl !== undefined && { sourceUrl }) }
        })
  if (text === '') return { frames }
  const exceptions = links.map(({ relation, type, message, frames: own }) => ({
    ...(relation && { relation }),
    ...{ type, message: message.slice(0, LINK_MESSAGE_MAX) },
    frames: own.map(frame => ({ ...positionOf(frame), inApp: frame.inApp })),
  }))
  return { frames, stack: { text, ...(language && { language }), exceptions } }
}

function asSent(frame: StackFrame): FindingFrame {
  const generated = positionOf(frame)
  return { ...generated, inApp: frame.inApp, resolved: false, generated }
}

function positionOf({ function: name, file, module, line, column }: StackFrame) {
  return { function: name, file: file || module, line, column }
}
