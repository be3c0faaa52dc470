import type { DescribedOperation, DescribedService, ReceivedAnswer } from './described-service.ts'

/** Builds a request from the example in the document; a test changes the part that it examines. */
export interface ExampleRequest {
  method: string
  path: string
  readonly query: URLSearchParams
  readonly headers: Headers
  body: string | Uint8Array<ArrayBuffer> | undefined
}

/** `mediaType` is the media type of the body, if the operation has one. */
export function exampleRequest(operation: DescribedOperation, mediaType = mediaTypesOf(operation)[0]): ExampleRequest {
  const { method, parameters, contents } = operation
  const query = new URLSearchParams()
  let { path } = operation
  // The header that a page adds, so that the response has its CORS headers. Agents are no pages, and are refused with it.
  const headers = new Headers(path === '/mcp' ? {} : { origin: 'https://shop.example' })
  for (const { name, in: place, example } of parameters) {
    if (example === undefined) continue
    if (place === 'path') path = path.replace(`{${name}}`, encodeURIComponent(String(example)))
    else if (place === 'query') query.set(name, String(example))
    else headers.set(name, String(example))
  }
  if (mediaType === undefined) return { method, path, query, headers, body: undefined }
  headers.set('content-type', mediaType)
  return { method, path, query, headers, body: bytesOf(mediaType, contents[mediaType]?.example) }
}

/** Undefined only for operations without a body. */
export function mediaTypesOf({ contents }: DescribedOperation): (string | undefined)[] {
  const mediaTypes = Object.keys(contents)
  return mediaTypes.length === 0 ? [undefined] : mediaTypes
}

/** Decodes an example body: protobuf is base64 in the document, text is unchanged. */
function bytesOf(mediaType: string, example: unknown): string | Uint8Array<ArrayBuffer> {
  if (mediaType === 'application/x-protobuf') return new Uint8Array(Buffer.from(String(example), 'base64'))
  return typeof example === 'string' ? example : JSON.stringify(example)
}

/** Adds a credential as its security scheme requires. */
export function presentCredential(
  { securitySchemes }: DescribedService,
  request: ExampleRequest,
  scheme: string,
  value: string,
): ExampleRequest {
  const described = securitySchemes[scheme]
  if (described === undefined) throw new Error(`there is no security scheme ${scheme}`)
  if (described.type === 'http') request.headers.set('authorization', `Bearer ${value}`)
  else if (described.in === 'header') request.headers.set(described.name, value)
  else request.query.set(described.name, value)
  return request
}

/** Sends a request that was built from an example. */
export async function send(baseUrl: string, request: ExampleRequest): Promise<ReceivedAnswer> {
  const { method, path, query, headers, body } = request
  const url = `${baseUrl}${path}${query.size > 0 ? `?${query}` : ''}`
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** Returns the paths of members that an example has and a value lacks; of an array, the first entry is compared. */
export function lacksOf(example: unknown, value: unknown, path = ''): string[] {
  if (typeof example !== 'object' || example === null) return value === undefined ? [path] : []
  if (typeof value !== 'object' || value === null) return [path]
  const entries = Array.isArray(example) ? Object.entries(example).slice(0, 1) : Object.entries(example)
  return entries.flatMap(([key, part]) => lacksOf(part, (value as Record<string, unknown>)[key], `${path}/${key}`))
}
