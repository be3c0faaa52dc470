import type { FindingFrame } from '../api/generated/client.ts'

/** Why frames were as they were sent when their stack was resolved last. */
const REASONS: Readonly<Record<NonNullable<FindingFrame['unresolvedReason']>, string>> = {
  no_version: 'The exception names no version (service.version), and no source map has the debug id of this file.',
  no_release: 'No release of this version had completed its source maps when the stack was resolved.',
  no_map: 'The release of this version has no source map for this file.',
  unusable_map: 'The source map of this file is missing, or cannot be parsed within its limits.',
  no_position: 'The source map of this file has nothing at this position.',
}

/** The frames of a stack, innermost first. */
export function Frames({ frames }: { readonly frames: readonly FindingFrame[] }) {
  if (frames.length === 0) {
    return <p class="quiet">No stack was sent with the last occurrence, or its format is unknown.</p>
  }
  return (
    <>
      {frames.some(isBuiltAsSent) && (
        <p class="quiet">
          <code>penstock sourcemaps upload</code> adds the maps of a build. Exceptions of the last 24 hours are resolved
          again when their maps arrive.
        </p>
      )}
      <ol class="frames">
        {frames.map((frame, i) => (
          <li key={i}>
            <div class="frame-head">
              <span class="function">{frame.function || '(anonymous)'}</span>
              <span class="file">{positionOf(frame)}</span>
              {frame.resolved && <span class="tag">source map</span>}
              {isBuiltAsSent(frame) && <span class="tag doubt">as sent</span>}
            </div>
            {frame.sourceLine !== undefined && (
              <pre class="source">
                <span class="line-number">{frame.line}</span>
                <code>{frame.sourceLine}</code>
              </pre>
            )}
            {frame.resolved && <div class="quiet">sent as {positionOf(frame.generated)}</div>}
            {isBuiltAsSent(frame) && <div class="quiet">{reasonOf(frame)}</div>}
          </li>
        ))}
      </ol>
    </>
  )
}

/** Reports whether a frame is of a built script and has no original position. Code of servers often has no build. */
function isBuiltAsSent({ resolved, file, line, column }: FindingFrame): boolean {
  return !resolved && line > 0 && (/^https?:/.test(file) || (line <= 5 && column > 200))
}

/** Stacks that were stored by version 0.1.0 have no reasons. */
function reasonOf({ unresolvedReason }: FindingFrame): string {
  return unresolvedReason === undefined ? 'No source map has resolved this frame.' : REASONS[unresolvedReason]
}

type Position = Pick<FindingFrame, 'file' | 'line' | 'column'>

function positionOf({ file, line, column }: Position): string {
  if (line === 0) return file || 'native code'
  return `${file}:${line}${column > 0 ? `:${column}` : ''}`
}
