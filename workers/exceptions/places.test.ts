import { describe, expect, it } from 'vitest'
import { identify } from '../../shared/grouping/fingerprint.ts'
import { placesOf, titleOfFailure } from './places.ts'

const texts = (attributes: Readonly<Record<string, string>>) => new Map(Object.entries(attributes))
const CHROME = 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36'

describe('the title of a failed span', () => {
  const http = { 'http.request.method': 'POST', 'http.response.status_code': '500' }

  it.each([
    ['has method, route and status', 'POST', { ...http, 'http.route': '/cart/{id}' }, 'POST /cart/{id} → 500'],
    [
      'takes the older names',
      'HTTP',
      { 'http.method': 'GET', 'http.target': '/a?b', 'http.status_code': '502' },
      'GET /a → 502',
    ],
    [
      'takes a template',
      'GET',
      { ...http, 'url.template': '/u/{user}', 'url.full': 'https://a.test/u/7' },
      'POST /u/{user} → 500',
    ],
    [
      'prefers the route to the path',
      'x',
      { ...http, 'http.route': 'api/Cart', 'url.path': '/api/Cart/7' },
      'POST /api/Cart → 500',
    ],
    [
      'replaces ids of a path',
      'POST',
      {
        ...http,
        'url.full': 'https://u:p@shop.test:1/orders/17/items/9115d58c-aaaa-bbbb-cccc-111122223333?mail=a@b.c#x',
      },
      'POST /orders/{id}/items/{id} → 500',
    ],
    [
      'replaces addresses',
      'x',
      { ...http, 'url.path': '/users/anna@shop.test/Anna%20B/order-17' },
      'POST /users/{id}/{id}/order-{id} → 500',
    ],
    ['has the path of a bare origin', 'x', { ...http, 'url.full': 'https://shop.test' }, 'POST / → 500'],
    [
      'states what kept the status away',
      'x',
      { 'http.method': 'GET', 'http.route': '/a', 'error.type': 'ETIMEDOUT' },
      'GET /a → ETIMEDOUT',
    ],
    ['takes 0 for no status', 'x', { 'http.method': 'GET', 'http.route': '/a', 'http.status_code': '0' }, 'GET /a'],
    ['keeps the name where no path is', 'POST', http, 'POST → 500'],
    ['of RPC is its name', 'shop.Cart/Checkout', { 'rpc.system': 'grpc' }, 'shop.Cart/Checkout'],
    ['of a database is its name', 'SELECT shop.orders', { 'db.system.name': 'mysql' }, 'SELECT shop.orders'],
    ['of messages has no ids', 'publish order-1234', {}, 'publish order-#'],
    ['of anything else is its name', 'charge card', { 'url.full': 'https://shop.test/a' }, 'charge card'],
  ])('%s', (_, name, attributes, title) => {
    expect(titleOfFailure(name, texts(attributes))).toBe(title)
  })

  it('is what its finding follows from, not the message, where it has a route', () => {
    const owner = { workspaceId: 'ws_1', surfaceId: 'srf_1', serviceName: 'shop', stacktrace: '' }
    const idOf = (type: string, message: string) => identify({ ...owner, type, message }).id
    expect(idOf('POST /cart → 500', 'a')).toBe(idOf('POST /cart → 500', 'b'))
    expect(idOf('POST /cart → 500', '')).not.toBe(idOf('POST /cart → 502', ''))
    expect(idOf('POST → 500', '')).not.toBe(idOf('POST → 502', ''))
    expect(idOf('charge card', 'declined')).not.toBe(idOf('charge card', 'the bank is closed'))
  })
})

describe('where an exception occurred', () => {
  const none = { browser: '', system: '', route: '', environment: '', host: '' }

  it.each([
    ['is unknown without attributes', {}, {}, {}],
    [
      'follows from the resource of a page',
      { 'url.full': 'https://shop.test/products?page=3' },
      {
        'browser.brands': '["Not A;Brand 99","Chromium 131","Google Chrome 131"]',
        'browser.platform': 'Windows',
        'deployment.environment.name': 'production',
      },
      { browser: 'Chrome 131', system: 'Windows', route: '/products', environment: 'production' },
    ],
    [
      'of a request is that of its caller',
      { 'user_agent.original': CHROME, 'http.route': '/cart' },
      { 'os.type': 'darwin', 'host.name': 'gw-1', 'deployment.environment': 'test' },
      { browser: 'Chrome 131', system: 'Linux', route: '/cart', environment: 'test', host: 'gw-1' },
    ],
    [
      'of a device has the major version of its system',
      {},
      { 'os.name': 'iOS', 'os.version': '17.5.1', 'os.type': 'darwin' },
      { system: 'iOS 17' },
    ],
    ['of a server has its type of system', {}, { 'os.type': 'linux', 'os.version': '5.15.0' }, { system: 'Linux' }],
    ['has the pod where no host is', {}, { 'k8s.pod.name': 'shop-1' }, { host: 'shop-1' }],
    [
      'has the parts of a user agent that a sender has read',
      {
        'user_agent.name': 'Firefox',
        'user_agent.version': '132.0',
        'user_agent.os.name': 'Android',
        'user_agent.os.version': '14',
      },
      {},
      { browser: 'Firefox 132', system: 'Android 14' },
    ],
  ])('%s', (_, record, resource, places) => {
    expect(placesOf(texts(record), texts(resource))).toEqual({ ...none, ...places })
  })

  it('is cut', () => {
    const long = 'ä'.repeat(1_000)
    const places = placesOf(texts({ 'http.route': `/${long}` }), texts({ 'host.name': long, 'os.name': long }))
    expect(Buffer.byteLength(places.route)).toBeLessThanOrEqual(256)
    expect(Buffer.byteLength(places.host)).toBe(128)
    expect(Buffer.byteLength(places.system)).toBe(128)
  })
})
