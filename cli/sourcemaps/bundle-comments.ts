/** The comments at the end of a bundle, which say where its source map is and which debug id the two share. */
export interface BundleComments {
  /** What the last `sourceMappingURL` comment names (ECMA-426), as it stands. */
  readonly sourceMappingUrl?: string
  /** In lower case. */
  readonly debugId?: string
  /** Where the comment of a debug id belongs: in the line above `sourceMappingURL`, else at the end. */
  readonly insertAt: number
}

/** Only so many lines are looked through, from the last one backwards. */
const MAX_LINES = 100
/** So many bytes of a line tell which kind of comment it is. */
const PREFIX_BYTES = 64
const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const URL_MARKER = 'sourceMappingURL='

/**
 * Reads the comments from the bytes of a bundle, or of its end. A bundle is never parsed: what counts are comments that
 * have nothing but comments behind them, as in ECMA-426 ("extract without parsing"), and debug ids near them
 * (proposal "Source Map Debug ID").
 */
export function readBundleComments(bundle: Buffer): BundleComments {
  let at: { sourceMappingUrl?: string; insertAt: number } | undefined
  let debugId: string | undefined
  for (const { start, end } of linesFromEnd(bundle)) {
    const prefix = bundle.toString('utf8', start, Math.min(end, start + PREFIX_BYTES)).trimStart()
    if (prefix === '') continue
    if (!isComment(prefix, bundle, start, end)) {
      at ??= commentBehindCode(bundle, start, end)
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

/** The line to put at `insertAt`. `before` and `after` are bytes around it: they say how the file ends its lines. */
export function debugIdLine(debugId: string, before: Buffer): string {
  const lastNewline = before.lastIndexOf(NEWLINE)
  const newline = lastNewline > 0 && before[lastNewline - 1] === CARRIAGE_RETURN ? '\r\n' : '\n'
  const isAtLineStart = before.length === 0 || lastNewline === before.length - 1
  return `${isAtLineStart ? '' : newline}//# debugId=${debugId}${newline}`
}

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

/** A line that is nothing but a comment. */
function isComment(prefix: string, bundle: Buffer, start: number, end: number): boolean {
  if (prefix.startsWith('//')) return true
  if (!prefix.startsWith('/*')) return false
  const close = bundle.indexOf('*/', start)
  return close !== -1 && close < end && bundle.toString('utf8', close + 2, end).trim() === ''
}

/** A comment at the end of a line of code. */
function commentBehindCode(
  bundle: Buffer,
  start: number,
  end: number,
): { sourceMappingUrl?: string; insertAt: number } {
  const at = Math.max(...['//# ', '//@ '].map(opening => bundle.lastIndexOf(opening + URL_MARKER, end)))
  const sourceMappingUrl = at >= start && at < end ? urlIn(bundle, at, end) : undefined
  return sourceMappingUrl === undefined ? { insertAt: bundle.length } : { sourceMappingUrl, insertAt: at }
}

/** What is named from the marker to the end of the line. A quote in it means that all of it stands in a string. */
function urlIn(bundle: Buffer, start: number, end: number): string | undefined {
  const at = bundle.indexOf(URL_MARKER, start) + URL_MARKER.length
  const url = bundle
    .toString('utf8', at, end)
    .replace(/\*\/\s*$/, '')
    .trim()
  return url === '' || /[\s"'`]/.test(url) ? undefined : url
}
