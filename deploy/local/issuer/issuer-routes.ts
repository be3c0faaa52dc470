import { createPublicKey } from 'node:crypto'
import { exportJWK } from 'jose'
import { z } from 'zod'
import { jsonReply, type Reply, type RequestHead, type Route } from '../../../shared/http/route.ts'
import { parseJson } from '../../../shared/json/parse-json.ts'
import { ISSUER_PATH, stepPage } from './pages.ts'
import {
  type AuthorizationRequest,
  CLIENT_ID,
  JSON_NO_STORE,
  LOOPBACK,
  type LocalIssuer,
  Provider,
  TEXT_MAX,
} from './provider.ts'

const FORM_LIMIT_BYTES = 8 * 1024

/**
 * Returns the routes of the OpenID provider of `npm start`: code flow with PKCE for the console, and for programs of this machine
 * once the user allows it. A link that `npm start` prints opens a session, which the page keeps in the storage of its origin: a
 * cookie would be sent to every port of this machine.
 */
export async function createIssuerRoutes(issuer: LocalIssuer): Promise<readonly Route[]> {
  const provider = new Provider(issuer)
  const url = issuer.baseUrl + ISSUER_PATH
  const jwk = { ...(await exportJWK(createPublicKey(issuer.identity.authPublicKey))), use: 'sig', alg: 'EdDSA' }
  return [
    get('/.well-known/openid-configuration', () => jsonReply(discoveryOf(url)), READ_BY_PAGES),
    get('/jwks.json', () => jsonReply({ keys: [jwk] }), READ_BY_PAGES),
    get('/authorize', head => provider.authorizePage(authorizationRequest(name => head.query(name)))),
    get('/open', () => stepPage('open')),
    get('/end', () => stepPage('end', 'You are signed out. To sign in again, print another link:')),
    step('/authorize', (read, session) => provider.authorize(authorizationRequest(read), session)),
    step('/open', (read, session) => provider.open(read('code') ?? '', session)),
    step('/allow', (read, session) => provider.allow(read('request') ?? '', session)),
    post('/token', text => provider.exchange(new URLSearchParams(text)), READ_BY_PAGES),
    post('/register', registerProgram, READ_BY_PAGES),
  ]
}

/** For routes that pages of the other address of the service, and tools in a browser, may read. */
const READ_BY_PAGES = { cors: true }

function get(path: string, accept: (head: RequestHead) => Reply | Promise<Reply>, options = { cors: false }): Route {
  return { method: 'GET', path: ISSUER_PATH + path, ...options, bodyLimitBytes: 0, accept }
}

/** Reads a parameter. */
type Read = (name: string) => string | undefined

/** Returns a route that takes a step of a page: a form with the session that the page has. */
function step(path: string, accept: (read: Read, session: string) => Promise<Reply>): Route {
  return post(path, text => {
    const form = new URLSearchParams(text)
    return accept(name => form.get(name) ?? undefined, form.get('session') ?? '')
  })
}

/** Returns a route that takes a small text. */
function post(path: string, accept: (text: string) => Reply | Promise<Reply>, options = { cors: false }): Route {
  return {
    method: 'POST',
    path: ISSUER_PATH + path,
    ...options,
    bodyLimitBytes: FORM_LIMIT_BYTES,
    accept: () => body => accept(body.toString('utf8')),
  }
}

function authorizationRequest(parameter: Read): AuthorizationRequest {
  const read = (name: string) => parameter(name) ?? ''
  return {
    clientId: read('client_id'),
    redirectUri: read('redirect_uri'),
    responseType: read('response_type'),
    challenge: read('code_challenge'),
    challengeMethod: read('code_challenge_method'),
    state: read('state'),
    prompt: read('prompt'),
    nonce: parameter('nonce')?.slice(0, TEXT_MAX),
    resource: read('resource'),
  }
}

function discoveryOf(url: string): object {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    registration_endpoint: `${url}/register`,
    end_session_endpoint: `${url}/end`,
    jwks_uri: `${url}/jwks.json`,
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    subject_types_supported: ['public'],
    scopes_supported: ['openid'],
    id_token_signing_alg_values_supported: ['EdDSA'],
    token_endpoint_auth_methods_supported: ['none'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  }
}

const registrationSchema = z.object({ redirect_uris: z.array(z.string().regex(LOOPBACK)).min(1).max(10) })

/** Registers a program of this machine (RFC 7591). All of them are one client, so that nothing is kept. */
function registerProgram(text: string): Reply {
  const asked = registrationSchema.safeParse(parseJson(text))
  if (!asked.success) return jsonReply({ error: 'invalid_redirect_uri' }, 400, JSON_NO_STORE)
  const registered = {
    client_id: CLIENT_ID,
    redirect_uris: asked.data.redirect_uris,
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  }
  return jsonReply(registered, 201, JSON_NO_STORE)
}
