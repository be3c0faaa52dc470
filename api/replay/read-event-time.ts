/**
 * The member `timestamp` of an event, in ms: of a line that is known to be a JSON object. Undefined where it has none
 * that can be a time. Reads bytes instead of parsing: a line may be a whole page, and its text would be made for a number.
 */
export function readEventTime(line: Uint8Array): number | undefined {
  let time: number | undefined
  let depth = 0
  for (let at = 0; at < line.length; at++) {
    const byte = line[at]
    if (byte === QUOTE) {
      const end = endOfString(line, at)
      // Of members of one name the last counts, as for JSON.parse.
      if (depth === 1 && end - at === KEY.length - 1 && isTimestampKey(line, at)) {
        const value = skipBlanks(line, end + 1)
        if (line[value] === COLON) time = readNumber(line, skipBlanks(line, value + 1))
      }
      at = end
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth--
  }
  return time
}

const KEY = Buffer.from('"timestamp"')
const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
/** What a Date can hold. */
const MAX_TIME_MS = 8.64e15

/** The position of the closing quote. */
function endOfString(line: Uint8Array, start: number): number {
  let at = start + 1
  while (at < line.length && line[at] !== QUOTE) at += line[at] === BACKSLASH ? 2 : 1
  return at
}

function isTimestampKey(line: Uint8Array, start: number): boolean {
  for (let i = 1; i < KEY.length; i++) if (line[start + i] !== KEY[i]) return false
  return true
}

function skipBlanks(line: Uint8Array, start: number): number {
  let at = start
  while (line[at] === 0x20 || line[at] === 0x09 || line[at] === 0x0d) at++
  return at
}

function readNumber(line: Uint8Array, start: number): number | undefined {
  let text = ''
  for (let at = start; at < line.length && text.length < 32; at++) {
    const byte = line[at] ?? 0
    const isPart =
      (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x2b || byte === 0x2e || (byte | 0x20) === 0x65
    if (!isPart) break
    text += String.fromCharCode(byte)
  }
  const value = text === '' ? Number.NaN : Number(text)
  return Math.abs(value) <= MAX_TIME_MS ? value : undefined
}
