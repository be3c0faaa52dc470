import { z } from 'zod'

/** A text argument. */
export function text(maxCharacters: number, description: string) {
  return z.string().min(1).max(maxCharacters).meta({ description })
}

/** The cursor of the next page. */
export const nextCursor = z.string().nullable().describe('The `cursor` of the next page; null on the last one.')

/** Returns attributes as an object, which has fewer characters than their list. The last one of a key is kept. */
export function attributesOf(attributes: readonly { readonly key: string; readonly value: string }[]) {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value]))
}
