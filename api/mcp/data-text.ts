import { UNSEEN } from '../../shared/scrubbing/unseen-characters.ts'

/**
 * Returns a text of telemetry for an agent. Strangers wrote it, so what cannot be seen is written out, such as `\u{202e}`. A
 * text over the limit is cut, and ends with the number of the characters that are missing.
 */
export function dataText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return withoutUnseen(text)
  return `${withoutUnseen(text.slice(0, maxCharacters))}… [${text.length - maxCharacters} more characters]`
}

/** Returns a text of telemetry in quotes and in one line. */
export function quotedText(text: string, maxCharacters: number): string {
  return JSON.stringify(dataText(text.slice(0, 4 * maxCharacters).replaceAll(/\s+/g, ' '), maxCharacters))
}

function withoutUnseen(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replaceAll(UNSEEN, character =>
      /[\n\t]/.test(character) ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`,
    )
}
