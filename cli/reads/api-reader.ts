import type { z } from 'zod'

/** Reads from the API of an installation. */
export interface ApiReader {
  /**
   * Returns an answer in the form of its schema, or undefined if there is no such thing. Throws an ApiRefusal for any other
   * answer, and an Error if the API is not reached, or if `signal` fires.
   */
  get<S extends z.ZodType>(path: string, schema: S, signal?: AbortSignal): Promise<z.infer<S> | undefined>
}

/** Where the API is, and who asks. */
interface ApiAccess {
  readonly url: string
  /** Session token. It is sent to this URL only. */
  readonly token: string
}

/** An answer of the API that has not what was requested. */
export class ApiRefusal extends Error {
  readonly status: number

  constructor(status: number, body: unknown) {
    super(`the API answered ${status}${problemOf(body)}`)
    this.status = status
  }
}

const TIMEOUT_MS = 30_000

/** Creates the reader. It follows no redirect, which would send the token to another server. */
export function createApiReader({ url, token }: ApiAccess, send: typeof fetch): ApiReader {
  return {
    async get(path, schema, signal) {
      const timeout = AbortSignal.timeout(TIMEOUT_MS)
      const response = await send(new URL(path, url), {
        headers: { authorization: `Bearer ${token}` },
        redirect: 'manual',
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      })
      if (response.status === 404) return undefined
      const body: unknown = await response.json().catch(() => undefined)
      if (response.status !== 200) throw new ApiRefusal(response.status, body)
      return schema.parse(body)
    },
  }
}

/** Returns code and message of a problem, with a colon before them. */
function problemOf(body: unknown): string {
  if (typeof body !== 'object' || body === null || !('code' in body) || !('message' in body)) return ''
  return `: ${body.code}: ${body.message}`
}
