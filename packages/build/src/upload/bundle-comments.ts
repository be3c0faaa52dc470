/** The comments at the end of a bundle. They name its source map and the debug id that both share. */
export interface BundleComments {
  /** The URL in the last `sourceMappingURL` comment (ECMA-426), unchanged. */
  readonly sourceMappingUrl?: string
  /** The debug id in lower case. */
  readonly debugId?: string
  /** Offset at which the debug id comment is inserted: the line above `sourceMappingURL`, else the end. */
  readonly insertAt: number
}

/** Number of lines that are read, from the last one backwards. */
const MAX_LINES = 100
/** Number of bytes of a line that show which kind of comment it is. */
const PREFIX_BYTES = 64
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const URL_MARKER = 'sourceMappingURL='

/**
 * Reads the comments from the bytes of a bundle or of its end. The bundle is never parsed. Only comments count that are
 * followed by nothing but comments, as in ECMA-426 ("extract without parsing"), and debug ids near them (proposal
 * "Source Map Debug ID").
 */
export function readBundleComments(bundle: Buffer): BundleComments {
  let at: { sourceMappingUrl?: string; insertAt: number } | undefined
  let debugId: string | undefined
  for (const { start, end } of linesFromEnd(bundle)) {
    const prefix = bundle.toString('utf8', start, Math.min(end, start + PREFIX_BYTES)).trimStart()
    if (prefix === '') continue
    if (!isComment(prefix, bundle, start, end)) {
      at ??= commentAfterCode(bundle, start, end)
      break
    }
    if (at === undefined && /^\/[/*][#@] sourceMappingURL=/.test(prefix)) {
      const sourceMappingUrl = urlIn(bundle, start, end)
      if (sourceMappingUrl !== undefined) at = { sourceMappingUrl, insertAt: start }
    }
    const id = /^\/\/[#@] debugId=(\S+)\s*$/.exec(prefix)?.[1]
    if (isDebugId(id)) debugId ??= id.toLowerCase()
  }
  return { insertAt: bundle.length, ...at, ...(debugId !== undefined && { debugId }) }
}

/**
 * Returns the line that is inserted at `insertAt`. `before` are the bytes before it, which show how the file ends its
 * lines.
 */
export function debugIdLine(debugId: string, before: Buffer): string {
  const lastNewline = before.lastIndexOf(NEWLINE)
  const newline = lastNewline > 0 && before[lastNewline - 1] === CARRIAGE_RETURN ? '\r\n' : '\n'
  const isAtLineStart = before.length === 0 || lastNewline === before.length - 1
  return `${isAtLineStart ? '' : newline}//# debugId=${debugId}${newline}`
}

/** Returns whether the text is a debug id, which is a UUID. */
export function isDebugId(text: unknown): text is string {
  return typeof text === 'string' && UUID.test(text)
}

function* linesFromEnd(bundle: Buffer): Generator<{ start: number; end: number }> {
  let end = bundle.length
  for (let lines = 0; lines < MAX_LINES && end > 0; lines++) {
    const start = bundle.lastIndexOf(NEWLINE, end - 1) + 1
    yield { start, end: end > start && bundle[end - 1] === CARRIAGE_RETURN ? end - 1 : end }
    end = start - 1
  }
}

/** Returns whether the line contains only a comment. */
function isComment(prefix: string, bundle: Buffer, start: number, end: number): boolean {
  if (prefix.startsWith('//')) return true
  if (!prefix.startsWith('/*')) return false
  const close = bundle.indexOf('*/', start)
  return close !== -1 && close < end && bundle.toString('utf8', close + 2, end).trim() === ''
}

/** Reads a comment at the end of a line of code. */
function commentAfterCode(bundle: Buffer, start: number, end: number): { sourceMappingUrl?: string; insertAt: number } {
  const at = Math.max(...['//# ', '//@ '].map(opening => bundle.lastIndexOf(opening + URL_MARKER, end)))
  const sourceMappingUrl = at >= start && at < end ? urlIn(bundle, at, end) : undefined
  return sourceMappingUrl === undefined ? { insertAt: bundle.length } : { sourceMappingUrl, insertAt: at }
}

/** Returns the URL after the marker. A quote in it means that the whole comment is inside a string. */
function urlIn(bundle: Buffer, start: number, end: number): string | undefined {
  const at = bundle.indexOf(URL_MARKER, start) + URL_MARKER.length
  const url = bundle
    .toString('utf8', at, end)
    .replace(/\*\/\s*$/, '')
    .trim()
  return url === '' || /[\s"'`]/.test(url) ? undefined : url
}
