/** A request in the spool. The service recognizes it by page and number, or a chunk by window and segment. */
export interface SpooledRequest {
  /** The page that made the request, and the key of its order there. */
  readonly page: string
  readonly order: number
  readonly createdAtMs: number
  /** Path and query, below the URL of the service. */
  readonly target: string
  readonly contentType: string
  /** Headers besides those of key and content. They are not sent at the end of a page, whose query has the same. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  readonly isGzip: boolean
}

/** Bytes of a request with what is around its body. */
export function sizeOf({ body, target }: SpooledRequest): number {
  return body.length + target.length + 200
}
