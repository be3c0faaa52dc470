import type { FindingFrame } from '../api/generated/client.ts'

/** The frames of a stack, innermost first. */
export function Frames({ frames }: { readonly frames: readonly FindingFrame[] }) {
  if (frames.length === 0) {
    return <p class="quiet">No stack was sent with the last occurrence, or its format is unknown.</p>
  }
  const resolvedFiles = new Set(frames.filter(({ resolved }) => resolved).map(({ generated }) => generated.file))
  return (
    <>
      {frames.some(isUnresolved) && (
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
              {isUnresolved(frame) && <span class="tag doubt">as sent</span>}
            </div>
            {frame.sourceLine !== undefined && (
              <pre class="source">
                <span class="line-number">{frame.line}</span>
                <code>{frame.sourceLine}</code>
              </pre>
            )}
            {frame.resolved && <div class="quiet">sent as {positionOf(frame.generated)}</div>}
            {isUnresolved(frame) && <div class="quiet">{reasonOf(frame, resolvedFiles)}</div>}
          </li>
        ))}
      </ol>
    </>
  )
}

type Position = Pick<FindingFrame, 'file' | 'line' | 'column'>

function positionOf({ file, line, column }: Position): string {
  if (line === 0) return file || 'native code'
  return `${file}:${line}${column > 0 ? `:${column}` : ''}`
}

/** Reports whether a frame is of a script that was built, and has no original position. */
function isUnresolved({ resolved, file, line, column }: FindingFrame): boolean {
  return !resolved && line > 0 && (/^https?:/.test(file) || (line <= 5 && column > 200))
}

/** Returns why a frame is as it was sent. A file of which another frame is resolved has a map, which lacks this position. */
function reasonOf({ file }: FindingFrame, resolvedFiles: ReadonlySet<string>): string {
  if (resolvedFiles.has(file)) return 'The source map of this file has nothing at this position.'
  return 'No release of this version has a source map for this file, or its map has nothing at this position.'
}
