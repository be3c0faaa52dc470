import { ENTRY_TEXT_MAX, type RecordedEntry } from './messages.ts'
import { EVENT, isRecord, numberOr, type RecordedEvent } from './recorded-event.ts'

const ERROR_LEVELS: ReadonlySet<unknown> = new Set(['error', 'assert'])
/** Requests of one event that are listed. */
const REQUESTS_MAX = 100

/** Returns the lines of the console and the requests that an event of a plugin of rrweb has. */
export function entriesOf({ type, data, timestamp }: RecordedEvent): readonly RecordedEntry[] {
  if (type !== EVENT.plugin || typeof data.plugin !== 'string' || !isRecord(data.payload)) return []
  const { plugin, payload } = data
  if (plugin.startsWith('rrweb/console')) return [lineOf(payload, timestamp)]
  if (!plugin.startsWith('rrweb/network') || !Array.isArray(payload.requests)) return []
  return payload.requests
    .filter(isRecord)
    .slice(0, REQUESTS_MAX)
    .map(request => requestOf(request, timestamp))
}

function lineOf({ level, payload }: Record<string, unknown>, at: number): RecordedEntry {
  const parts = Array.isArray(payload) ? payload.slice(0, 50).map(part => readable(part)) : []
  return {
    at,
    kind: 'console',
    isError: ERROR_LEVELS.has(level),
    text: cut(`${cut(String(level))}: ${parts.join(' ')}`),
  }
}

/** The recorder writes each argument as JSON. Texts are shown without its quotes and escapes. */
function readable(part: unknown): string {
  if (typeof part !== 'string') return ''
  const text = cut(part)
  if (!text.startsWith('"') || text !== part) return text
  try {
    return cut(String(JSON.parse(text)))
  } catch {
    // Not every recorder writes JSON.
    return text
  }
}

function requestOf(request: Record<string, unknown>, timestamp: number): RecordedEntry {
  const status = numberOr(request.status ?? request.responseStatus, undefined)
  const method = typeof request.method === 'string' ? request.method : 'GET'
  const address = typeof request.name === 'string' ? request.name : String(request.url ?? '')
  return {
    at: numberOr(request.timestamp, timestamp),
    kind: 'network',
    isError: status !== undefined && (status === 0 || status >= 400),
    text: cut(`${cut(method)} ${cut(address)} ${status ?? ''}`.trim()),
  }
}

const cut = (text: string) => text.slice(0, ENTRY_TEXT_MAX)
