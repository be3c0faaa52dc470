import type { RequestFeed } from '../signals/request-feed.ts'

/** How the requests of the page are watched. */
export interface UrlRules {
  /** Told of each request that ends. */
  readonly feed: RequestFeed
  /** URL of the service, whose own requests make no spans. */
  readonly ownUrl: string
  readonly propagateTo: readonly (string | RegExp)[]
  readonly ignore: readonly (string | RegExp)[]
}

/** How a request is seen. */
export interface SeenUrl {
  readonly url: URL
  readonly isPropagated: boolean
}

/** Returns how a request to an address is seen, or undefined if it makes no span. */
export function seeUrl(
  { ownUrl, propagateTo, ignore }: Omit<UrlRules, 'feed'>,
  address: string | URL,
): SeenUrl | undefined {
  let url: URL
  try {
    url = new URL(address, document.baseURI)
  } catch {
    return undefined
  }
  if (!/^https?:$/.test(url.protocol) || url.href.startsWith(ownUrl)) return undefined
  if (ignore.some(rule => (typeof rule === 'string' ? url.href.includes(rule) : rule.test(url.href)))) return undefined
  const isAllowed = (rule: string | RegExp) =>
    typeof rule === 'string' ? url.href.startsWith(rule) : rule.test(url.href)
  return { url, isPropagated: url.origin === location.origin || propagateTo.some(isAllowed) }
}

/** Returns the attributes of a request. Names and passwords of a URL are left out. */
export function requestAttributes(method: string, url: URL): Readonly<Record<string, string | number>> {
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  return {
    'http.request.method': method,
    'url.full': shown.href,
    'server.address': url.hostname,
    'server.port': Number(url.port) || (url.protocol === 'https:' ? 443 : 80),
  }
}
