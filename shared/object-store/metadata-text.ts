/** Percent-encodes a client's text for the metadata of an object, and cuts it between characters to at most `limitBytes`. */
export function metadataText(text: string, limitBytes: number): string {
  let encoded = ''
  for (const character of text.toWellFormed()) {
    const next = encoded + encodeURIComponent(character)
    if (next.length > limitBytes) break
    encoded = next
  }
  return encoded
}
