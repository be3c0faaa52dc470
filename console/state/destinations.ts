import { addressOf } from './router.ts'

/** A page that a searched text may mean. */
export interface Destination {
  readonly name: string
  readonly address: string
}

const TRACE_ID = /^[0-9a-f]{32}$/i
const SPAN_ID = /^[0-9a-f]{16}$/i
/** The header `traceparent`: version, trace, span, flags. */
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/i
const FINDING_ID = /^fnd_[a-z2-7]{26}$/
const RELEASE_SLUG = /^rel_[\w-]+$/
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const VERSION = /^v?\d+(?:\.\d+)+[\w.+-]*$/
/** Longest text that the lists search for. */
const SEARCHED_MAX = 200

/** Returns the pages that a text may mean, the most likely one first. */
export function destinationsOf(typed: string): Destination[] {
  const text = typed.trim()
  if (text === '') return []
  const [, traceId, spanId] = TRACEPARENT.exec(text) ?? []
  if (traceId !== undefined) return [traceOf(traceId, spanId)]
  if (TRACE_ID.test(text)) return [traceOf(text), sessionOf(text)]
  if (FINDING_ID.test(text)) return [{ name: `Finding ${text}`, address: addressOf(`findings/${text}`) }]
  if (RELEASE_SLUG.test(text)) return [{ name: `Release ${text}`, address: addressOf(`releases/${text}`) }]
  if (SPAN_ID.test(text)) {
    const span = text.toLowerCase()
    return [{ name: `Log records of the span ${span}`, address: addressOf('logs', { span }) }, ...listsOf(text)]
  }
  if (UUID.test(text)) return [sessionOf(text), ...listsOf(text)]
  if (text.includes('@')) return [personOf(text), ...listsOf(text)]
  if (VERSION.test(text)) return [versionOf(text), ...listsOf(text), personOf(text)]
  return [...listsOf(text), personOf(text), sessionOf(text)]
}

function traceOf(id: string, span?: string): Destination {
  const traceId = id.toLowerCase()
  return { name: `Trace ${traceId}`, address: addressOf(`traces/${traceId}`, { span: span?.toLowerCase() }) }
}

function sessionOf(id: string): Destination {
  return { name: `Session ${id}`, address: addressOf(`sessions/${encodeURIComponent(id)}`) }
}

function personOf(user: string): Destination {
  return { name: `Sessions of ${user}`, address: addressOf('sessions', { user }) }
}

function versionOf(version: string): Destination {
  return { name: `Releases with the version ${version}`, address: addressOf('releases', { version }) }
}

function listsOf(text: string): Destination[] {
  const q = text.slice(0, SEARCHED_MAX)
  return [
    { name: `Findings with “${q}” in type or message`, address: addressOf('findings', { q }) },
    { name: `Log records with “${q}”`, address: addressOf('logs', { q }) },
    { name: `Traces with a span named “${q}”`, address: addressOf('traces', { name: q }) },
  ]
}
