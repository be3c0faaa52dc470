import type { FindingDetails, FindingFrame } from '../api/generated/client.ts'
import { counted } from '../state/format.ts'

/** Why frames were as they were sent when their stack was resolved last. */
const REASONS: Readonly<Record<NonNullable<FindingFrame['unresolvedReason']>, string>> = {
  no_version: 'The exception names no version (service.version), and no source map has the debug id of this file.',
  no_release: 'No release of this version had completed its source maps when the stack was resolved.',
  no_map: 'The release of this version has no source map for this file.',
  unusable_map: 'The source map of this file is missing, or cannot be parsed within its limits.',
  no_position: 'The source map of this file has nothing at this position.',
}

/** The stack of a finding: the exception that was reported, what caused it, and the text as it was sent. */
export function Stack({ finding: { frames, stack } }: { readonly finding: FindingDetails }) {
  const causes = stack?.exceptions.slice(1) ?? []
  return (
    <>
      {frames.length === 0 && (
        <p class="quiet">
          {stack === undefined
            ? 'The last occurrence was sent without a stack.'
            : 'The format of this stack is unknown. It is below as it was sent.'}
        </p>
      )}
      {frames.some(isBuiltAsSent) && (
        <p class="quiet">
          <code>penstock sourcemaps upload</code> adds the maps of a build. Exceptions of the last 24 hours are resolved
          again when their maps arrive.
        </p>
      )}
      <Frames frames={frames} />
      {causes.map(({ relation, type, message, frames: own }, i) => (
        <section key={i}>
          <h3>
            {HEADINGS[relation ?? 'cause']} {type || 'an exception'}
          </h3>
          {message !== '' && <p class="message-whole">{message}</p>}
          {!frames.some(({ resolved }) => resolved) && <Frames frames={own} />}
        </section>
      ))}
      {stack !== undefined && (
        <details open={frames.length === 0}>
          <summary>As it was sent</summary>
          <pre class="source">{stack.text}</pre>
        </details>
      )}
    </>
  )
}

type Exception = NonNullable<FindingDetails['stack']>['exceptions'][number]

/** How an exception belongs to the one before it. */
const HEADINGS: Readonly<Record<NonNullable<Exception['relation']>, string>> = {
  cause: 'Caused by',
  context: 'While handling',
  suppressed: 'Suppressed',
  member: 'One of its members:',
}

/** A frame with or without an original position. */
type Frame = Exception['frames'][number] & Partial<FindingFrame>

/** Frames, innermost first. Those of libraries and the runtime are folded where frames of the application are beside them. */
function Frames({ frames }: { readonly frames: readonly Frame[] }) {
  if (frames.length === 0) return null
  const hasInApp = frames.some(({ inApp }) => inApp)
  return (
    <ol class="frames">
      {runsOf(frames).map((run, i) =>
        hasInApp && run[0]?.inApp === false ? (
          <li key={i}>
            <details>
              <summary class="quiet">{counted(run.length, 'frame')} of libraries and the runtime</summary>
              <ol class="frames">
                {run.map((frame, j) => (
                  <OneFrame key={j} frame={frame} />
                ))}
              </ol>
            </details>
          </li>
        ) : (
          run.map((frame, j) => <OneFrame key={`${i} ${j}`} frame={frame} />)
        ),
      )}
    </ol>
  )
}

/** Divides frames into runs that are all of the application, or all not. */
function runsOf(frames: readonly Frame[]): Frame[][] {
  const runs: Frame[][] = []
  for (const frame of frames) {
    const last = runs.at(-1)
    if (last?.[0]?.inApp === frame.inApp) last.push(frame)
    else runs.push([frame])
  }
  return runs
}

function OneFrame({ frame }: { readonly frame: Frame }) {
  return (
    <li>
      <div class="frame-head">
        <span class="function">{frame.function || '(anonymous)'}</span>
        {frame.sourceUrl === undefined ? (
          <span class="file">{positionOf(frame)}</span>
        ) : (
          <a class="file" href={frame.sourceUrl} target="_blank" rel="noopener noreferrer">
            {positionOf(frame)}
          </a>
        )}
        {frame.resolved && <span class="tag">source map</span>}
        {isBuiltAsSent(frame) && <span class="tag doubt">as sent</span>}
      </div>
      <Source frame={frame} />
      {frame.resolved && frame.generated && <div class="quiet">sent as {positionOf(frame.generated)}</div>}
      {isBuiltAsSent(frame) && <div class="quiet">{reasonOf(frame)}</div>}
    </li>
  )
}

/** The line of a frame, with those around it where they are known. */
function Source({ frame: { line, sourceLine, sourceLines } }: { readonly frame: Frame }) {
  if (sourceLine === undefined) return null
  const { from, lines } = sourceLines ?? { from: line, lines: [sourceLine] }
  return (
    <pre class="source">
      {lines.map((text, i) => (
        <div key={i} class={from + i === line && lines.length > 1 ? 'source-line own' : 'source-line'}>
          <span class="line-number">{from + i}</span>
          <code>{text}</code>
        </div>
      ))}
    </pre>
  )
}

/** Reports whether a frame is of a built script and has no original position. Code of servers often has no build. */
function isBuiltAsSent({ resolved, file, line, column }: Frame): boolean {
  return !resolved && line > 0 && (/^https?:/.test(file) || (line <= 5 && column > 200))
}

/** Stacks that were stored by version 0.1.0 have no reasons. */
function reasonOf({ unresolvedReason }: Frame): string {
  return unresolvedReason === undefined ? 'No source map has resolved this frame.' : REASONS[unresolvedReason]
}

type Position = Pick<FindingFrame, 'file' | 'line' | 'column'>

function positionOf({ file, line, column }: Position): string {
  if (line === 0) return file || 'native code'
  return `${file}:${line}${column > 0 ? `:${column}` : ''}`
}
