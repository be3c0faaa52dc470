import { randomUUID } from 'node:crypto'

/** A JSON text that is a part of a larger value and appears in it exactly as it is written. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/**
 * Returns a value as JSON, in which each `JsonText` is its text. `JSON.parse` would round large numbers and move keys that
 * are numbers. The texts must be valid JSON.
 */
export function stringifyWithTexts(value: unknown): string {
  // A client cannot guess the mark, so no text of a client is taken for one.
  const mark = randomUUID()
  const texts: string[] = []
  const json = JSON.stringify(value, (_key, member: unknown) =>
    member instanceof JsonText ? `${mark}:${texts.push(member.text) - 1}` : member,
  )
  return json.replaceAll(new RegExp(`"${mark}:(\\d+)"`, 'g'), (_mark, index: string) => texts[Number(index)] ?? '')
}
