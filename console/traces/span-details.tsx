import { type Attribute, readSpans, type SpanDetails } from '../api/generated/client.ts'
import { counted, formatNanos } from '../state/format.ts'
import { useLoad } from '../state/load.ts'
import { addressOf } from '../state/router.ts'
import { AttributeTable, attributesOf } from '../ui/attributes.tsx'
import { Notice, Shown } from '../ui/states.tsx'
import { Copy, Fact, Facts, SessionLink, Time } from '../ui/text.tsx'

/** Everything that was received of one span. */
export function SpanPanel(props: { readonly traceId: string; readonly spanId: string; readonly onClose: () => void }) {
  const { traceId, spanId, onClose } = props
  const loaded = useLoad(`span ${traceId} ${spanId}`, signal =>
    readSpans({ traceId, body: { spanIds: [spanId] } }, { signal }),
  )
  return (
    <aside class="span-panel" aria-label="Details of the span">
      <div class="panel-head">
        <h2>Span</h2>
        <button type="button" class="plain" onClick={onClose}>
          Close
        </button>
      </div>
      <Shown loaded={loaded} what="the span">
        {({ spans, tooLarge }) => {
          const [span] = spans
          if (span?.spanId === spanId) return <Details span={span} traceId={traceId} />
          if (tooLarge.length > 0) {
            return <Notice title="Too large" text="This span has more than 4 MiB, which no response has room for." />
          }
          return loaded.isLoading ? null : (
            <Notice title="Not retained" text="This span is not in the trace any more." />
          )
        }}
      </Shown>
    </aside>
  )
}

function Details({ span, traceId }: { readonly span: SpanDetails; readonly traceId: string }) {
  const nanos = Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano))
  return (
    <>
      <p class="panel-name">
        {span.name} {span.statusCode === 'ERROR' && <span class="tag bad">error</span>}
      </p>
      {span.statusMessage && <p class="message">{span.statusMessage}</p>}
      <Facts>
        <Fact name="Service">{span.serviceName || '–'}</Fact>
        <Fact name="Kind">{span.kind.toLowerCase()}</Fact>
        <Fact name="Duration">{formatNanos(nanos)}</Fact>
        <Fact name="Start">
          <Time iso={span.timestamp} precise />
        </Fact>
        {span.occurrenceCount > 1 && <Fact name="Received">{span.occurrenceCount} times</Fact>}
      </Facts>
      <p class="panel-links">
        {span.findingIds.map(id => (
          <a key={id} href={addressOf(`findings/${id}`)}>
            Finding
          </a>
        ))}
        <a href={addressOf('logs', { trace: traceId, span: span.spanId })}>Logs</a>
        {span.sessionId && <SessionLink id={span.sessionId}>Session</SessionLink>}
        <Copy text={span.spanId} what="span id" />
      </p>
      <Attributes
        title="Attributes"
        attributes={span.attributes}
        dropped={span.droppedAttributesCount}
        filters="traces"
      />
      {span.events.map((event, i) => (
        <section key={i}>
          <h3>
            {event.name} <span class="quiet">{offsetOf(event.timeUnixNano, span.startTimeUnixNano)}</span>
          </h3>
          <Attributes attributes={event.attributes} dropped={event.droppedAttributesCount} />
        </section>
      ))}
      {span.droppedEventsCount > 0 && (
        <p class="quiet">The sender dropped {counted(span.droppedEventsCount, 'event')}.</p>
      )}
      {span.links.length > 0 && <Links links={span.links} traceId={traceId} />}
      <Attributes
        title="Resource"
        attributes={attributesOf(span.resource.attributes)}
        dropped={span.resource.droppedAttributesCount}
      />
      <Attributes
        title={`Scope ${[span.scope.name, span.scope.version].filter(Boolean).join(' ')}`}
        attributes={attributesOf(span.scope.attributes)}
        dropped={span.scope.droppedAttributesCount}
      />
    </>
  )
}

function Links({ links, traceId }: { readonly links: SpanDetails['links']; readonly traceId: string }) {
  return (
    <section>
      <h3>Links</h3>
      <ul class="entries">
        {links.map((link, i) => (
          <li key={i}>
            <a class="mono" href={addressOf(`traces/${link.traceId}`, { span: link.spanId })}>
              {link.traceId === traceId
                ? `span ${link.spanId} of this trace`
                : `span ${link.spanId} of ${link.traceId}`}
            </a>
            <Attributes attributes={link.attributes} dropped={link.droppedAttributesCount} />
          </li>
        ))}
      </ul>
    </section>
  )
}

function Attributes(props: {
  readonly title?: string
  readonly attributes: readonly Pick<Attribute, 'key' | 'value'>[]
  readonly dropped: number
  readonly filters?: 'traces'
}) {
  const { title, attributes, dropped, filters } = props
  if (attributes.length === 0 && dropped === 0) return null
  return (
    <section>
      {title && <h3>{title}</h3>}
      <AttributeTable attributes={attributes} filters={filters} />
      {dropped > 0 && <p class="quiet">The sender dropped {counted(dropped, 'attribute')}.</p>}
    </section>
  )
}

function offsetOf(time: string, start: string): string {
  return `after ${formatNanos(Number(BigInt(time) - BigInt(start)))}`
}
