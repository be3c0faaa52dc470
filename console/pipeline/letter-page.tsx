import { fetchPath } from '../api/client.ts'
import { type DeadLetterDetails, readDeadLetter } from '../api/generated/client.ts'
import { counted, formatBytes } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { Notice, Shown } from '../ui/states.tsx'
import { Copy, Fact, Facts, Time, Title } from '../ui/text.tsx'
import { STATE_TAGS } from './dead-letters.tsx'
import { LetterActions } from './letter-actions.tsx'
import { sentenceOf } from './reasons.ts'

/** A request that could not be stored: why, what of it is stored, its body, and every attempt. */
export function LetterPage({ id }: { readonly id: string }) {
  const loaded = useLoad(`letter ${id}`, signal => readDeadLetter({ letterId: id }, { signal }))
  return (
    <>
      <Title text="Dead letter" quiet={loaded.value?.deadLetter.reason ?? ''} />
      <p class="quiet trace-id">
        <a href={addressOf('pipeline')}>Pipeline</a> <code>{id}</code> <Copy text={id} what="id" />
      </p>
      <Shown loaded={loaded} what="the dead letter">
        {({ deadLetter: letter }) => (
          <>
            <p>{sentenceOf(letter.reason)}</p>
            {letter.detail && <p class="message-whole">{letter.detail}</p>}
            <LetterFacts letter={letter} />
            <LetterActions selection={{ ids: [id] }} what="this dead letter" onDone={loaded.again} />
            <div class="columns">
              <Attempts letter={letter} />
              {letter.rejected.length > 0 && <Rejected rejected={letter.rejected} />}
            </div>
            <section>
              <h2>Body</h2>
              {letter.contentType === undefined ? (
                <Notice title="The bytes are gone" text="They were purged, or their retention has ended." />
              ) : (
                <Body id={id} letter={letter} />
              )}
            </section>
          </>
        )}
      </Shown>
    </>
  )
}

function LetterFacts({ letter }: { readonly letter: DeadLetterDetails }) {
  return (
    <Facts>
      <Fact name="State">
        <span class={STATE_TAGS[letter.state]}>{letter.state}</span>{' '}
        {!letter.isReplayable && <span class="tag doubt">cannot be replayed</span>}
      </Fact>
      <Fact name="Received">
        <Time iso={letter.receivedAt} exact />
      </Fact>
      <Fact name="Queue">{letter.queue}</Fact>
      <Fact name="Surface">{letter.surfaceId}</Fact>
      <Fact name="Size">{formatBytes(letter.bodyBytes)}</Fact>
      <Fact name="Type">{[letter.contentType, letter.contentEncoding].filter(Boolean).join(', ') || '–'}</Fact>
      <Fact name="Stored">{letter.storedTables.length > 0 ? counted(letter.storedRecords, 'record') : 'nothing'}</Fact>
      <Fact name="Replays">{letter.replays}</Fact>
    </Facts>
  )
}

const OUTCOMES = { dead: 'tag bad', stored: 'tag good', pending: 'tag doubt' } as const

function Attempts({ letter }: { readonly letter: DeadLetterDetails }) {
  return (
    <section>
      <h2>Attempts</h2>
      <ul class="entries">
        {letter.attempts.map((attempt, i) => (
          <li key={i} class="entry-head">
            <span class={OUTCOMES[attempt.outcome]}>{attempt.outcome}</span>
            <span>{attempt.replayedAt === undefined ? 'as it was sent' : 'replayed'}</span>
            {attempt.reason && <code>{attempt.reason}</code>}
            {(attempt.settledAt ?? attempt.replayedAt) && (
              <span class="quiet">
                <Time iso={attempt.settledAt ?? attempt.replayedAt ?? ''} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

function Rejected({ rejected }: Pick<DeadLetterDetails, 'rejected'>) {
  const shown = (indexes: readonly number[]) => indexes.slice(0, 20).join(', ') + (indexes.length > 20 ? ', …' : '')
  return (
    <section>
      <h2>Records that are not stored</h2>
      <ul class="entries">
        {rejected.map(({ reason, count, indexes }) => (
          <li key={reason}>
            {counted(count, 'record')}: <code>{reason}</code> {sentenceOf(reason)}
            <div class="quiet">at {shown(indexes)}</div>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Body({ id, letter }: { readonly id: string; readonly letter: DeadLetterDetails }) {
  const loaded = useLoad(`body of ${id}`, signal => readExcerpt(id, signal))
  return (
    <Shown loaded={loaded} what="the body">
      {({ text, isHex, isCut }) => (
        <>
          <textarea
            class="source body"
            readOnly
            rows={Math.min(20, text.split('\n').length + 2)}
            aria-label={isHex ? 'Bytes of the body in hex' : 'Text of the body'}
            value={text || '(empty)'}
          />
          {isCut && (
            <p class="quiet">
              This is the beginning of {formatBytes(letter.bodyBytes)}. <code>GET /v3/dead-letters/…/body</code> has all
              bytes.
            </p>
          )}
        </>
      )}
    </Shown>
  )
}

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
async function readExcerpt(letterId: string, signal: AbortSignal): Promise<Excerpt> {
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
