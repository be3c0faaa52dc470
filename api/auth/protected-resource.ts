import { jsonReply, NO_SNIFF, type RequestHead, type Route } from '../../shared/http/route.ts'
import type { Presented, ResourcePath } from './caller.ts'

/** How interactive tools sign their users in (docs/api/credentials.md#sign-in). */
interface SignInSettings {
  /** The address of the service. Unset: that of each request. */
  readonly PUBLIC_URL?: string | undefined
  /** The provider that signs users in. Unset: tools cannot sign in. */
  readonly CONSOLE_ISSUER?: string | undefined
  readonly CONSOLE_CLIENT_ID: string
  readonly CONSOLE_SCOPE: string
  readonly CONSOLE_AUDIENCE?: string | undefined
}

const METADATA_PATH = '/.well-known/oauth-protected-resource'
const HOST = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/** Returns what a request presents. It must be called while the head is readable. */
export function presentedBy(head: Pick<RequestHead, 'header'>): Presented {
  return {
    authorization: head.header('authorization'),
    host: head.header('host'),
    isSecure: head.header('x-forwarded-proto') === 'https',
  }
}

/**
 * Returns the address of the metadata of a resource (RFC 9728), as challenges name it, or undefined if tools cannot sign in. It is
 * below the address of the service, as the request names it unless it is set.
 */
export function metadataUrl(
  settings: SignInSettings,
  presented: Omit<Presented, 'authorization'>,
  path: ResourcePath,
): string | undefined {
  const base = settings.CONSOLE_ISSUER === undefined ? undefined : baseOf(settings, presented)
  return base === undefined ? undefined : `${base}${METADATA_PATH}${path}`
}

function baseOf({ PUBLIC_URL }: SignInSettings, { host, isSecure }: Omit<Presented, 'authorization'>) {
  if (PUBLIC_URL !== undefined) return PUBLIC_URL
  return host !== undefined && HOST.test(host) ? `${isSecure ? 'https' : 'http'}://${host}` : undefined
}

/** Returns the routes of the metadata, which name the provider that signs users in. There are none without a provider. */
export function createResourceRoutes(settings: SignInSettings): readonly Route[] {
  const { CONSOLE_ISSUER: issuer } = settings
  if (issuer === undefined) return []
  return (['', '/mcp'] as const).map((path): Route => {
    return {
      method: 'GET',
      path: METADATA_PATH + path,
      cors: true,
      bodyLimitBytes: 0,
      accept: head => {
        const resource = `${baseOf(settings, presentedBy(head)) ?? ''}${path}`
        return jsonReply(metadataOf(settings, issuer, resource), 200, HEADERS)
      },
    }
  })
}

const HEADERS = [['content-type', 'application/json'], NO_SNIFF, ['cache-control', 'no-cache']] as const

function metadataOf(settings: SignInSettings, issuer: string, resource: string): object {
  const { CONSOLE_CLIENT_ID, CONSOLE_SCOPE, CONSOLE_AUDIENCE } = settings
  return {
    resource,
    authorization_servers: [issuer],
    bearer_methods_supported: ['header'],
    scopes_supported: CONSOLE_SCOPE.split(' ').filter(Boolean),
    resource_name: 'Penstock',
    // For "penstock login": the client that the provider knows, and the parameter by which some providers choose the audience.
    penstock_client_id: CONSOLE_CLIENT_ID,
    ...(CONSOLE_AUDIENCE !== undefined && { penstock_audience: CONSOLE_AUDIENCE }),
  }
}
