import { Option } from 'commander'
import { z } from 'zod'
import { ConfigError } from '../../shared/runtime/config.ts'
import type { ReadCommandContext } from '../command-context.ts'
import { findLocalApi } from '../local-environment.ts'
import { type KeptSession, keepSession, readSessions } from '../sign-in/kept-sessions.ts'
import { parsedBy } from '../terminal.ts'

/** Asks the API of an installation. */
export interface ApiReader {
  /**
   * Returns an answer in the form of its schema, or undefined if there is no such thing. Throws an ApiRefusal for any other
   * answer, and an Error if the API is not reached, or if `signal` fires.
   */
  get<S extends z.ZodType>(path: string, schema: S, signal?: AbortSignal): Promise<z.infer<S> | undefined>
  /** Sends a body as JSON. The rest is as in `get`. */
  post<S extends z.ZodType>(path: string, body: object, schema: S): Promise<z.infer<S> | undefined>
  put<S extends z.ZodType>(path: string, body: object, schema: S): Promise<z.infer<S> | undefined>
}

/** Where the API is, and who asks. */
interface ApiAccess {
  readonly url: string
  /** Session token or API key. It is sent to this URL only. */
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
function createApiReader({ url, token }: ApiAccess, send: typeof fetch): ApiReader {
  async function ask<S extends z.ZodType>(
    path: string,
    schema: S,
    request: RequestInit,
  ): Promise<z.infer<S> | undefined> {
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    const response = await send(new URL(path, url), {
      ...request,
      headers: { authorization: `Bearer ${token}`, ...(request.body && { 'content-type': 'application/json' }) },
      redirect: 'manual',
      signal: request.signal ? AbortSignal.any([timeout, request.signal]) : timeout,
    }).catch(error => {
      throw error instanceof TypeError ? new Error(`no API answers at ${url}: is it running?`, { cause: error }) : error
    })
    if (response.status === 404) return undefined
    const body: unknown = await response.json().catch(() => undefined)
    if (response.status !== 200) throw new ApiRefusal(response.status, body)
    return schema.parse(body)
  }
  return {
    get: (path, schema, signal) => ask(path, schema, signal === undefined ? {} : { signal }),
    post: (path, body, schema) => ask(path, schema, { method: 'POST', body: JSON.stringify(body) }),
    put: (path, body, schema) => ask(path, schema, { method: 'PUT', body: JSON.stringify(body) }),
  }
}

/** Returns code and message of a problem, with a colon before them. */
function problemOf(body: unknown): string {
  if (typeof body !== 'object' || body === null || !('code' in body) || !('message' in body)) return ''
  return `: ${body.code}: ${body.message}`
}

const urlSchema = z.url({ protocol: /^https?$/, error: 'It must be a URL, such as https://penstock.example.' })

/** Options of every command that reads from the API. */
export interface ReadOptions {
  readonly url?: string
  readonly json?: boolean
}

/** Where the API is, for the help of every command that reads from it. */
export const ACCESS_HELP = `
The address is that of --url, else of PENSTOCK_URL. The credential is PENSTOCK_TOKEN (an API key or a session token), else the
sign-in of "login" at this address. Without an address and PENSTOCK_TOKEN, the command reads from the installation that "npm start"
has created in this directory, else from the one of the last sign-in.`

/** Returns the option that names the API. */
export function urlOption(): Option {
  return new Option('--url <url>', 'the address of the API').argParser(parsedBy(urlSchema))
}

/** Returns a reader of the API. Throws a ConfigError if nothing says where it is. */
export async function connectReader(context: ReadCommandContext, { url }: ReadOptions): Promise<ApiReader> {
  const { env, directory, fetch } = context
  const given = url ?? env.PENSTOCK_URL
  const token = env.PENSTOCK_TOKEN
  if (given !== undefined && token !== undefined) return createApiReader({ url: given, token }, fetch)
  if (token !== undefined) throw new ConfigError('set PENSTOCK_URL or pass --url')
  const local = given === undefined ? await findLocalApi(env, directory) : undefined
  if (local !== undefined) return createApiReader({ url: local.baseUrl, token: local.sessionToken }, fetch)
  const session = await signedIn(context, given)
  if (session !== undefined) return createApiReader({ url: session.url, token: session.accessToken }, fetch)
  throw new ConfigError(
    given === undefined
      ? 'set PENSTOCK_URL and PENSTOCK_TOKEN, or run "npm start" or "login" first'
      : 'set PENSTOCK_TOKEN to an API key or a session token, or run "login" first',
  )
}

/** Returns an address as sign-ins are kept by it. */
export function plainUrl(url: string): string {
  return url.replace(/\/+$/, '')
}

/** Time before its end at which a token is renewed. */
const RENEWED_BEFORE_MS = 60_000

/** Returns the sign-in at an address, or the last one. One that ends is renewed first. */
async function signedIn({ env, fetch }: ReadCommandContext, url: string | undefined): Promise<KeptSession | undefined> {
  const sessions = await readSessions(env)
  const session = url === undefined ? sessions[0] : sessions.find(kept => kept.url === plainUrl(url))
  if (session === undefined || session.expiresAtMs > Date.now() + RENEWED_BEFORE_MS) return session
  const { renewSession } = await import('../sign-in/sign-in.ts')
  try {
    const renewed = await renewSession({ fetch, now: Date.now }, session)
    await keepSession(env, renewed)
    return renewed
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ConfigError(`the sign-in at ${session.url} has ended (${reason}): run "login" again`)
  }
}
