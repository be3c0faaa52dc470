import { createPublicKey } from 'node:crypto'
import { exportJWK } from 'jose'
import { z } from 'zod'
import { jsonReply, type Reply, type RequestHead, type Route } from '../../../shared/http/route.ts'
import { parseJson } from '../../../shared/json/parse-json.ts'
import { ISSUER_PATH } from './pages.ts'
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
 * once the user allows it. A link that `npm start` prints opens a session, which a cookie of the issuer keeps. No other route
 * reads cookies.
 */
export async function createIssuerRoutes(issuer: LocalIssuer): Promise<readonly Route[]> {
  const provider = new Provider(issuer)
  const url = issuer.baseUrl + ISSUER_PATH
  const jwk = { ...(await exportJWK(createPublicKey(issuer.identity.authPublicKey))), use: 'sig', alg: 'EdDSA' }
  return [
    get('/.well-known/openid-configuration', () => jsonReply(discoveryOf(url))),
    get('/jwks.json', () => jsonReply({ keys: [jwk] })),
    get('/authorize', head => provider.authorize(authorizationRequest(head), head.header('cookie'))),
    get('/allow', head => provider.allow(head.query('request') ?? '', head.header('cookie'))),
    get('/open', head => provider.open(head.query('code') ?? '', head.header('cookie'))),
    get('/end', () => provider.end()),
    post('/token', text => provider.exchange(new URLSearchParams(text))),
    post('/register', registerProgram),
  ]
}

/** Returns a route that pages of the other address of the service may read. */
function get(path: string, accept: (head: RequestHead) => Reply | Promise<Reply>): Route {
  return { method: 'GET', path: ISSUER_PATH + path, cors: true, bodyLimitBytes: 0, accept }
}

/** Returns a route that takes a small text. */
function post(path: string, accept: (text: string) => Reply | Promise<Reply>): Route {
  return {
    method: 'POST',
    path: ISSUER_PATH + path,
    cors: true,
    bodyLimitBytes: FORM_LIMIT_BYTES,
    accept: () => body => accept(body.toString('utf8')),
  }
}

function authorizationRequest(head: RequestHead): AuthorizationRequest {
  const read = (name: string) => head.query(name) ?? ''
  return {
    clientId: read('client_id'),
    redirectUri: read('redirect_uri'),
    responseType: read('response_type'),
    challenge: read('code_challenge'),
    challengeMethod: read('code_challenge_method'),
    state: read('state'),
    prompt: read('prompt'),
    nonce: head.query('nonce')?.slice(0, TEXT_MAX),
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
