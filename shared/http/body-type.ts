import type { Problem } from '../../schemas/http/problems.ts'
import type { RequestHead } from './route.ts'

/** The type and the length of a body, as the head of its request states them. */
export interface BodyType {
  /** In lower case and without parameters. */
  readonly mediaType: string | undefined
  /** In lower case; `identity` if the header is absent. */
  readonly contentEncoding: string
  /** The announced length; undefined for a chunked body. */
  readonly contentLength: number | undefined
}

/** Reads the type of a body from the head of its request. */
export function bodyTypeOf(head: RequestHead): BodyType {
  return {
    mediaType: parseMediaType(head.header('content-type')),
    contentEncoding: contentEncodingOf(head),
    contentLength: head.contentLength,
  }
}

/** Returns the encoding of a body in lower case. `x-gzip` means `gzip` (RFC 9110 section 8.4.1.3). */
export function contentEncodingOf(head: Pick<RequestHead, 'header'>): string {
  const encoding = head.header('content-encoding')?.trim().toLowerCase() ?? 'identity'
  return encoding === 'x-gzip' ? 'gzip' : encoding
}

/**
 * Returns the media type without its parameters. Usual headers are returned as they are: this runs for every export.
 */
function parseMediaType(header: string | undefined): string | undefined {
  if (header === undefined || header === 'application/x-protobuf' || header === 'application/json') return header
  const end = header.indexOf(';')
  return (end < 0 ? header : header.slice(0, end)).trim().toLowerCase()
}

/** Returns the problem of a body that is compressed, or whose type is none of these. */
export function bodyTypeFault(type: BodyType, mediaTypes: readonly (string | undefined)[]): Problem | undefined {
  if (!mediaTypes.includes(type.mediaType)) {
    const named = mediaTypes.filter(mediaType => mediaType !== undefined)
    return unsupported(`content-type must be ${named.join(' or ')}`)
  }
  if (type.contentEncoding !== 'identity') {
    return unsupported('content-encoding must be absent: this body is not compressed')
  }
  return undefined
}

function unsupported(message: string): Problem {
  return { code: 'REQUEST_INVALID', status: 415, message }
}
