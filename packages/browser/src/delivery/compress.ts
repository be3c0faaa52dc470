/** A body, compressed or not. */
export interface EncodedBody {
  readonly body: Uint8Array<ArrayBuffer>
  readonly isGzip: boolean
}

/** Smaller bodies gain nothing. */
const MIN_CHARACTERS = 1_000

/** Compresses a text in a thread of the browser, where it has that. No worker is started, so that a strict policy allows it. */
export async function compress(text: string): Promise<EncodedBody> {
  if (text.length < MIN_CHARACTERS || typeof CompressionStream === 'undefined') return encode(text)
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))
  return { body: new Uint8Array(await new Response(stream).arrayBuffer()), isGzip: true }
}

/** Encodes a text at once, for a page that ends. */
export function encode(text: string): EncodedBody {
  return { body: new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>, isGzip: false }
}
