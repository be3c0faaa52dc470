import { HttpError } from '@oazapfts/runtime'
import { defaults } from './generated/client.ts'

/** Why a request failed, for people and for the decision to repeat it. */
export interface Fault {
  /** 0 if no response arrived. */
  readonly status: number
  readonly code: string
  readonly message: string
  /** Milliseconds after which to try again. Undefined if the same request would fail again. */
  readonly retryAfterMs: number | undefined
}

/** How requests of this page are authorized. */
interface Authorization {
  readonly token: () => string | undefined
  /** Called when the API refuses a token. */
  readonly refused: () => void
}

/** Makes every request carry the token. The generated client sends them all through this. */
export function authorizeRequests({ token, refused }: Authorization): void {
  defaults.fetch = async (url, init) => {
    const headers = new Headers(init?.headers)
    const sent = token()
    if (sent !== undefined) headers.set('authorization', `Bearer ${sent}`)
    const response = await fetch(url, { ...init, headers, credentials: 'omit', redirect: 'error' })
    if (response.status === 401) refused()
    return response
  }
}

/** Requests a path whose response is not JSON. Throws an HttpError for a status of an error. */
export async function fetchPath(path: string, signal: AbortSignal): Promise<Response> {
  const response = await (defaults.fetch ?? fetch)(path, { signal })
  if (response.ok) return response
  const data: unknown = await response.json().catch(() => undefined)
  throw new HttpError(response.status, data, response.headers)
}

const RETRY_MS = 2_000

/** Describes a failed request. Overload, stores that do not respond and lost connections pass by themselves. */
export function faultOf(error: unknown): Fault {
  if (!(error instanceof HttpError)) {
    const message = error instanceof Error ? error.message : String(error)
    const isLost = error instanceof TypeError
    return {
      status: 0,
      code: isLost ? 'NETWORK' : 'CLIENT',
      message: isLost ? 'the service cannot be reached' : message,
      retryAfterMs: isLost ? RETRY_MS : undefined,
    }
  }
  const { code = 'UNKNOWN', message = `status ${error.status}` } = (error.data ?? {}) as Partial<Fault>
  const seconds = Number(error.headers.get('retry-after'))
  const passes = error.status === 429 || error.status === 503
  return { status: error.status, code, message, retryAfterMs: passes ? Math.max(RETRY_MS, seconds * 1_000) : undefined }
}
