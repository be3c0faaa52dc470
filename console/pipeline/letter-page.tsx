import { type DeadLetterDetails, readDeadLetter } from '../api/generated/client.ts'
import { counted, formatBytes } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { Fact, Facts } from '../ui/facts.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Copy, Time, Title } from '../ui/text.tsx'
import { STATE_TAGS } from './dead-letters.tsx'
import { LetterActions } from './letter-actions.tsx'
import { readExcerpt } from './letter-body.ts'

/** A request that could not be stored: why, what of it is stored, its body, and every attempt. */
export function LetterPage({ id }: { readonly id: string }) {
  const loaded = useLoad(id, signal => readDeadLetter({ letterId: id }, { signal }))
  return (
    <>
      <Title text="Dead letter" quiet={loaded.value?.deadLetter.reason ?? ''} />
      <p class="quiet trace-id">
        <a href={addressOf('pipeline')}>Pipeline</a> <code>{id}</code> <Copy text={id} what="id" />
      </p>
      <Shown loaded={loaded} what="the dead letter">
        {({ deadLetter: letter }) => (
          <>
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
            {counted(count, 'record')}: <code>{reason}</code>
            <div class="quiet">at {shown(indexes)}</div>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Body({ id, letter }: { readonly id: string; readonly letter: DeadLetterDetails }) {
  const loaded = useLoad(`body ${id}`, signal => readExcerpt(id, signal))
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
