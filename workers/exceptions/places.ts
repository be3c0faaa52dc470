import { LRUCache } from 'lru-cache'
import { isHash } from '../../shared/stacks/is-hash.ts'
import { normalizeName } from '../../shared/stacks/normalize-message.ts'
import { cutString } from '../otlp/protobuf/cut-text.ts'
import type { AttributeTexts } from '../otlp/protobuf/place-attributes.ts'
import { browserOf, browserOfBrands, systemOf, systemOfResource, withVersion } from './user-agent.ts'

/** Where an exception occurred. Each text is empty if nothing states it. */
export interface Places {
  readonly browser: string
  readonly system: string
  readonly route: string
  readonly environment: string
  readonly host: string
}

const PLACE_BYTES = 128
const ROUTE_BYTES = 256
/** Texts of which each cache keeps what follows from them, with at most 512 bytes each. */
const REMEMBERED = 2_000

/**
 * Returns where an exception occurred, by the attributes of its span or log record, then by those of the resource
 * (docs/api/findings.md#values).
 */
export function placesOf(record: AttributeTexts, resource: AttributeTexts): Places {
  const first = (...names: string[]) => firstOf(record, names) || firstOf(resource, names)
  return {
    browser: cut(browserIn(record) || browserIn(resource)),
    system: cut(systemIn(record) || systemIn(resource)),
    route: routeOf(record),
    environment: cut(first('deployment.environment.name', 'deployment.environment')),
    host: cut(first('host.name', 'k8s.pod.name')),
  }
}

/**
 * Returns the title of a span that failed without an exception: for HTTP its method, route and status, as in
 * `POST /cart/{id} → 500`, else its name with ids replaced.
 */
export function titleOfFailure(name: string, attributes: AttributeTexts): string {
  const method = firstOf(attributes, ['http.request.method', 'http.method'])
  if (method === '') return normalizeName(name)
  const route = routeOf(attributes)
  const outcome = firstOf(attributes, ['http.response.status_code', 'http.status_code', 'error.type'], ['0', '_OTHER'])
  const title = route === '' ? normalizeName(name) : `${method.slice(0, 32)} ${route}`
  return outcome === '' ? title : `${title} → ${cut(outcome)}`
}

function browserIn(texts: AttributeTexts): string {
  const name = firstOf(texts, ['user_agent.name'])
  if (name !== '') return withVersion(name, texts.get('user_agent.version'))
  const brands = browserOfBrands(firstOf(texts, ['browser.brands']))
  return brands || browserOfAgent(userAgentIn(texts))
}

function systemIn(texts: AttributeTexts): string {
  const text = (name: string) => texts.get(name) ?? ''
  return (
    systemOfResource(text('os.name'), text('os.version'), '') ||
    withVersion(text('user_agent.os.name'), text('user_agent.os.version')) ||
    systemOfAgent(userAgentIn(texts)) ||
    text('browser.platform') ||
    systemOfResource('', '', text('os.type'))
  )
}

function userAgentIn(texts: AttributeTexts): string {
  return firstOf(texts, ['user_agent.original', 'http.user_agent'])
}

/** Returns the route of a request or a page, else its path with ids replaced. It has no query. */
function routeOf(texts: AttributeTexts): string {
  const route = firstOf(texts, ['http.route', 'url.template'])
  if (route !== '') return cutString(route.startsWith('/') ? route : `/${route}`, ROUTE_BYTES)
  const url = firstOf(texts, ['url.full', 'http.url', 'url.path', 'http.target'])
  return url === '' ? '' : pathOf(url)
}

const browserOfAgent = remembered(browserOf)
const systemOfAgent = remembered(systemOf)

/** Returns the path of a URL. Its ids, addresses and encoded texts are `{id}`. */
const pathOf = remembered(url => {
  const path = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#;].*$/s, '')
  const segments = path.replace(/^\//, '').split('/')
  return cutString(`/${segments.map(withoutIds).join('/')}`, ROUTE_BYTES)
})

function withoutIds(segment: string): string {
  if (/[@%\s]/.test(segment)) return '{id}'
  const withoutId = (part: string) =>
    /\d{4}/.test(part) || isHash(part) ? '{id}' : part.replace(/(^|[-_])\d+$/, '$1{id}')
  return segment.split('.').map(withoutId).join('.')
}

/** Returns the first of these attributes that is not empty, and none of the texts that state nothing. */
function firstOf(texts: AttributeTexts, names: readonly string[], without: readonly string[] = []): string {
  for (const name of names) {
    const text = texts.get(name) ?? ''
    if (text !== '' && !without.includes(text)) return text
  }
  return ''
}

function cut(text: string): string {
  return cutString(text, PLACE_BYTES)
}

/** Remembers what follows from the texts that were seen last: an installation repeats them. */
function remembered(derive: (text: string) => string): (text: string) => string {
  const known = new LRUCache<string, string>({ max: REMEMBERED })
  return text => {
    if (text === '') return ''
    let derived = known.get(text)
    if (derived === undefined) {
      derived = derive(text)
      known.set(text, derived)
    }
    return derived
  }
}
