import type { Problem } from '../../schemas/http/problems.ts'
import type { RequestHead } from './route.ts'

/** What the head of a request says of its body. */
export interface BodyType {
  /** In lower case and without parameters. */
  readonly mediaType: string | undefined
  readonly contentEncoding: string
}

export function bodyTypeOf(head: RequestHead): BodyType {
  return {
    mediaType: head.header('content-type')?.split(';', 1)[0]?.trim().toLowerCase(),
    contentEncoding: head.header('content-encoding')?.trim().toLowerCase() ?? 'identity',
  }
}

/** What is wrong with a body that must be of one of these types, and not compressed. */
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
