/** Decodes UTF-8 text of at most `limitBytes`, cut between characters. */
export function cutText(bytes: Buffer, start: number, end: number, limitBytes: number): string {
  let cut = end
  if (end - start > limitBytes) {
    cut = start + limitBytes
    while (cut > start && ((bytes[cut] as number) & 0xc0) === 0x80) cut--
  }
  return bytes.toString('utf8', start, cut)
}
