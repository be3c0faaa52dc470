/** Where the statement of the debug id is, or can be inserted, in a bundle. */
export interface StatementPlace {
  /** Offset in bytes. */
  readonly at: number
  /** Line of the place, from 0 on. */
  readonly line: number
  /** Column of the place, in UTF-16 code units as in source maps. */
  readonly column: number
  /** The bundle has the statement already. */
  readonly isThere: boolean
}

const BEGIN =
  ';!function(){try{var g=globalThis,s=new g.Error().stack;s&&((g._penstockDebugIds=g._penstockDebugIds||{})[s]="'
const END = '")}catch(e){}}();'
const DEBUG_ID_LENGTH = 36

/** Number of columns by which the statement moves the code after it. */
export const STATEMENT_LENGTH = BEGIN.length + DEBUG_ID_LENGTH + END.length

/**
 * Returns the statement that makes the debug id of a bundle known when it runs: an entry of `globalThis._penstockDebugIds`, whose
 * key is a stack and whose value is the id. The first frame of the stack is in the bundle. The statement is on no line of its
 * own, so that lines stay. It begins with a semicolon, because it may follow a directive without one.
 */
export function debugIdStatement(debugId: string): string {
  return BEGIN + debugId + END
}

const HASHBANG = /^#![^\n]*\n/
const BLANK = /(?:\s+|\/\/[^\n\r\u2028\u2029]*|\/\*[\s\S]*?\*\/)*/y
const STRING = /'(?:[^'\\\n]|\\[\s\S])*'|"(?:[^"\\\n]|\\[\s\S])*"/y
/** Code that begins a statement after a line break, so that the string before it is a directive. */
const STATEMENT_START = /(?!in\b|instanceof\b)[A-Za-z_$'"{]|!(?!=)/y

/**
 * Finds the place before the first statement: after a hashbang, and after directives such as 'use strict', which a statement
 * before them would disable. `head` are the first bytes of the bundle. Returns undefined if it does not show where directives
 * end.
 */
export function findStatementPlace(head: Buffer, isWhole: boolean): StatementPlace | undefined {
  const text = head.toString('utf8')
  const first = HASHBANG.exec(text)?.[0].length ?? (text.startsWith('\ufeff') ? 1 : 0)
  if (first === 0 && text.startsWith('#!')) return undefined
  let place = first
  for (;;) {
    const next = endOf(BLANK, text, place) ?? place
    const literalEnd = endOf(STRING, text, next)
    const isCut = !isWhole && (next >= text.length - 1 || /^(?:\/\*|['"])/.test(text.slice(next, next + 2)))
    if (literalEnd === undefined && isCut) return undefined
    if (literalEnd === undefined) break
    const after = endOf(BLANK, text, literalEnd) ?? literalEnd
    if (after >= text.length - 1 && !isWhole) return undefined
    // After a directive without a semicolon, the one of the statement does not belong to the directive.
    if (text.startsWith(BEGIN, after)) place = after
    else if (text[after] === ';') place = after + 1
    else if (after === text.length || isStatementAfterBreak(text, literalEnd, after)) place = literalEnd
    else break
    if (text.startsWith(BEGIN, place)) break
  }
  const before = Buffer.from(text.slice(0, place))
  // Bytes that are not UTF-8 have no columns.
  if (!before.equals(head.subarray(0, before.length))) return undefined
  const lineStart = text.lastIndexOf('\n', place - 1) + 1
  const line = text.slice(0, lineStart).split('\n').length - 1
  return { at: before.length, line, column: place - lineStart, isThere: text.startsWith(BEGIN, place) }
}

function isStatementAfterBreak(text: string, end: number, next: number): boolean {
  return /[\n\r\u2028\u2029]/.test(text.slice(end, next)) && endOf(STATEMENT_START, text, next) !== undefined
}

/** Returns where a match at exactly this position ends. */
function endOf(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}
