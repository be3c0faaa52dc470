/** Percent-encoded for a header, and cut between characters: a text of the client's may be anything, and of any length. */
export function metadataText(text: string, limitBytes: number): string {
  let encoded = ''
  for (const character of text.toWellFormed()) {
    const next = encoded + encodeURIComponent(character)
    if (next.length > limitBytes) break
    encoded = next
  }
  return encoded
}
