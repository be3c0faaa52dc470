/** Returns a text in pieces that end with a line. Only the last one may lack its line feed. */
export async function* wholeLines(text: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer[] = []
  for await (const piece of text) {
    const end = piece.lastIndexOf(LINE_FEED) + 1
    if (end > 0) {
      yield rest.length === 0 ? piece.subarray(0, end) : Buffer.concat([...rest, piece.subarray(0, end)])
      rest = []
    }
    if (end < piece.length) rest.push(piece.subarray(end))
  }
  if (rest.length > 0) yield Buffer.concat(rest)
}

const LINE_FEED = 0x0a
