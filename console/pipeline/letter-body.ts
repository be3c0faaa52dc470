import { fetchPath } from '../api/client.ts'

/** Bytes of a body that are shown. */
const EXCERPT_BYTES = 16_384
const HEX_BYTES = 512
const LINE_BYTES = 16

/** The beginning of a body: its text, or its bytes in hex if it is not text. */
interface Excerpt {
  readonly text: string
  readonly isHex: boolean
  readonly isCut: boolean
}

/** Reads the beginning of the body of a dead letter. The rest is neither read nor inflated. */
export async function readExcerpt(letterId: string, signal: AbortSignal): Promise<Excerpt> {
  const response = await fetchPath(`/v3/dead-letters/${encodeURIComponent(letterId)}/body`, signal)
  const encoding = response.headers.get('x-letter-content-encoding') ?? ''
  const stored = response.body ?? new Blob([]).stream()
  if (encoding !== 'gzip') return excerptOf(await readFirst(stored))
  // Bytes that cannot be inflated may be the reason of the letter: they are shown as they are.
  const [inflated, plain] = stored.tee()
  try {
    const first = await readFirst(inflated.pipeThrough(new DecompressionStream('gzip')))
    await plain.cancel()
    return excerptOf(first)
  } catch {
    return excerptOf(await readFirst(plain))
  }
}

async function readFirst(stream: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  const reader = stream.getReader()
  const chunks: Uint8Array[] = []
  let size = 0
  while (size <= EXCERPT_BYTES) {
    const { done, value } = await reader.read()
    if (done) break
    chunks.push(value)
    size += value.length
  }
  void reader.cancel()
  return new Uint8Array(await new Blob(chunks as BlobPart[]).arrayBuffer()).subarray(0, EXCERPT_BYTES + 1)
}

function excerptOf(bytes: Uint8Array): Excerpt {
  const shown = bytes.subarray(0, EXCERPT_BYTES)
  const isCut = bytes.length > EXCERPT_BYTES
  try {
    // A cut may be inside of a character, which is then left out.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(shown, { stream: isCut })
    if (!hasControls(text)) return { text, isHex: false, isCut }
  } catch {
    return { text: hexOf(bytes), isHex: true, isCut: bytes.length > HEX_BYTES }
  }
  return { text: hexOf(bytes), isHex: true, isCut: bytes.length > HEX_BYTES }
}

/** Reports whether a text has control characters other than white space, as binary formats have. */
function hasControls(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 32 && code !== 9 && code !== 10 && code !== 13) return true
  }
  return false
}

function hexOf(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let at = 0; at < Math.min(bytes.length, HEX_BYTES); at += LINE_BYTES) {
    const line = bytes.subarray(at, at + LINE_BYTES)
    const hex = Array.from(line, byte => byte.toString(16).padStart(2, '0')).join(' ')
    const text = Array.from(line, byte => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·')).join('')
    lines.push(`${at.toString(16).padStart(4, '0')}  ${hex.padEnd(LINE_BYTES * 3)} ${text}`)
  }
  return lines.join('\n')
}
