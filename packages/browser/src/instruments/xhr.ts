import type { RequestFeed } from '../signals/request-feed.ts'
import { CLIENT, type OpenSpan, type Tracer } from '../signals/tracer.ts'
import { endWithStatus, traceparentOf } from './fetch.ts'
import { requestAttributes, type SeenUrl, seeUrl, type UrlRules } from './urls.ts'

/** A request that was opened. */
interface Opened {
  readonly method: string
  readonly seen: SeenUrl
}

/** Makes a span of each `XMLHttpRequest`. Returns what undoes it. */
export function watchXhr(tracer: Tracer, rules: UrlRules): () => void {
  const { prototype } = XMLHttpRequest
  const { open, send } = prototype
  const opened = new WeakMap<XMLHttpRequest, Opened>()

  function watchedOpen(this: XMLHttpRequest, ...given: [method: string, url: string | URL]): void {
    opened.delete(this)
    const [method, url] = given
    const seen = seeUrl(rules, url)
    if (seen !== undefined) opened.set(this, { method: String(method).toUpperCase(), seen })
    Reflect.apply(open, this, given)
  }

  function watchedSend(this: XMLHttpRequest, ...given: [body?: Document | XMLHttpRequestBodyInit | null]): void {
    const request = opened.get(this)
    if (request !== undefined) begin(tracer, this, request, rules.feed)
    Reflect.apply(send, this, given)
  }

  prototype.open = watchedOpen
  prototype.send = watchedSend
  return () => {
    if (prototype.open === watchedOpen) prototype.open = open
    if (prototype.send === watchedSend) prototype.send = send
  }
}

function begin(tracer: Tracer, xhr: XMLHttpRequest, { method, seen }: Opened, feed: RequestFeed): void {
  const span = tracer.start({ name: method, kind: CLIENT, attributes: requestAttributes(method, seen.url) })
  if (seen.isPropagated) xhr.setRequestHeader('traceparent', traceparentOf(span))
  const onEnd = () => {
    end(span, xhr)
    feed.add(method, seen.url, xhr.status)
  }
  xhr.addEventListener('loadend', onEnd, { once: true })
}

function end(span: OpenSpan, { status }: XMLHttpRequest): void {
  if (status > 0) endWithStatus(span, status)
  else span.end({ 'error.type': 'network' }, 'the request was aborted or had no response')
}
