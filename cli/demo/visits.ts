import { DOTNET, type Exception, GO, JAVA, NODE, PYTHON } from './exceptions.ts'
import type { Attributes } from './otlp.ts'
import type { Telemetry, Trace, Visit } from './telemetry.ts'

/** How a checkout ends: as it should, or by the failure of one service. */
export type CheckoutEnd = 'placed' | 'declined' | 'pool' | 'timeout' | 'panic' | 'sale'

const http = (method: string, route: string, status: number): Attributes => ({
  'http.request.method': method,
  'http.route': route,
  'http.response.status_code': status,
  'server.address': 'shop.example',
})
const rpc = (method: string, status: number): Attributes => ({
  'rpc.system': 'grpc',
  'rpc.service': 'shop.inventory.Stock',
  'rpc.method': method,
  'rpc.grpc.status_code': status,
})
const sql = (operation: string, table: string, text: string): Attributes => ({
  'db.system.name': 'postgresql',
  'db.namespace': 'shop',
  'db.operation.name': operation,
  'db.collection.name': table,
  'db.query.text': text,
})

/** A customer opens the list of products: a statement for each product, which is one too many. */
export function browse(telemetry: Telemetry, visit: Visit, at: number): void {
  const { random } = telemetry
  const trace = telemetry.trace(visit)
  const stocks = Array.from({ length: random.int(3, 12) }, () => random.ms(2.2))
  const list = random.ms(6)
  const server = list + stocks.reduce((sum, ms) => sum + ms, 0) + 2
  const gateway = server + random.ms(3)
  const page = gateway + random.ms(70)
  const root = trace.span('shop-web', 'documentLoad', {
    kind: 'internal',
    at,
    ms: page + 20,
    attributes: { 'url.full': 'https://shop.example/' },
  })
  const request = { 'url.full': 'https://shop.example/api/products', ...http('GET', '/api/products', 200) }
  const call = trace.span('shop-web', 'GET', {
    kind: 'client',
    at: at + 15,
    ms: gateway + 20,
    parent: root,
    attributes: request,
  })
  const entry = trace.span('gateway', 'GET /api/products', {
    kind: 'server',
    at: at + 24,
    ms: gateway,
    parent: call,
    attributes: http('GET', '/api/products', 200),
  })
  const stock = trace.span('inventory', 'shop.inventory.Stock/List', {
    kind: 'server',
    at: at + 25,
    ms: server,
    parent: entry,
    attributes: rpc('List', 0),
  })
  const query = 'SELECT sku, name FROM products ORDER BY rank LIMIT $1'
  trace.span('inventory', 'SELECT products', {
    kind: 'client',
    at: at + 25.5,
    ms: list,
    parent: stock,
    attributes: sql('SELECT', 'products', query),
  })
  let cursor = at + 26 + list
  for (const ms of stocks) {
    const attributes = sql('SELECT', 'stock', 'SELECT count FROM stock WHERE sku = $1')
    trace.span('inventory', 'SELECT stock', { kind: 'client', at: cursor, ms, parent: stock, attributes })
    cursor += ms
  }
  trace.log('gateway', 'INFO', 'GET /api/products 200', { at: at + 24 + gateway, span: entry })
  if (random.chance(0.3)) {
    trace.log('inventory', 'DEBUG', `listed ${stocks.length} products`, { at: at + 25 + server, span: stock })
  }
}

/** What a failure does to a checkout: the service that fails, how, and the status that its caller gets. */
const FAILURES: Readonly<Record<Exclude<CheckoutEnd, 'placed' | 'declined'>, { exception: Exception; ms: number }>> = {
  pool: { exception: JAVA, ms: 30_003 },
  timeout: { exception: PYTHON, ms: 5_004 },
  panic: { exception: GO, ms: 3 },
  sale: { exception: DOTNET, ms: 4 },
}

/** A customer pays. Six services in five languages take part; each failure is recorded as the SDK of its language does. */
export function checkout(telemetry: Telemetry, visit: Visit, at: number, end: CheckoutEnd, user: string): Trace {
  const { random } = telemetry
  const trace = telemetry.trace(visit)
  const isFailed = end !== 'placed' && end !== 'declined'
  const status = isFailed ? 500 : end === 'declined' ? 402 : 201
  const failed = isFailed ? FAILURES[end] : undefined
  const error = isFailed ? 'status 500' : undefined
  const order = `ord_${random.hex(8)}`
  const cents = random.int(900, 24_000)
  const work = (failed?.ms ?? 0) + (end === 'pool' ? 4 : Math.max(80, random.ms(210, 0.4)))
  const route = http('POST', '/api/orders', status)

  const root = trace.span('shop-web', 'submit #checkout', { kind: 'internal', at, ms: work + 90 })
  const call = trace.span('shop-web', 'POST', {
    kind: 'client',
    at: at + 6,
    ms: work + 70,
    parent: root,
    attributes: { 'url.full': 'https://shop.example/api/orders', ...route },
    error,
  })
  const entry = trace.span('gateway', 'POST /api/orders', {
    kind: 'server',
    at: at + 20,
    ms: work + 30,
    parent: call,
    attributes: { ...route, 'enduser.id': user },
    error: failed && NODE.message,
    exception: failed && NODE,
  })
  const placing = trace.span('orders', 'POST /v1/orders', {
    kind: 'server',
    at: at + 28,
    ms: work + 12,
    parent: entry,
    attributes: {
      ...http('POST', '/v1/orders', status),
      'thread.name': `http-nio-8080-exec-${random.int(1, 10)}`,
      'order.total_cents': cents,
    },
    error: end === 'pool' ? JAVA.message : error,
    exception: end === 'pool' ? JAVA : undefined,
  })
  trace.log('orders', 'INFO', `placing order ${order} of ${(cents / 100).toFixed(2)} EUR`, {
    at: at + 28.2,
    span: placing,
    attributes: { 'order.id': order, 'order.total_cents': cents, 'log.logger': 'example.shop.orders.OrderService' },
  })
  if (end !== 'pool') place(telemetry, trace, { at: at + 30, ms: work, placing, end, order })
  trace.log('gateway', isFailed ? 'ERROR' : 'INFO', `POST /api/orders ${status} in ${Math.round(work + 30)} ms`, {
    at: at + 50 + work,
    span: entry,
    attributes: { 'http.response.status_code': status },
  })
  return trace
}

interface Placing {
  readonly at: number
  readonly ms: number
  readonly placing: string
  readonly end: CheckoutEnd
  readonly order: string
}

/** The order is priced, its goods are reserved, it is paid and published, as far as it gets. */
function place(telemetry: Telemetry, trace: Trace, placing: Placing): void {
  price(telemetry, trace, placing)
  if (placing.end === 'sale') return
  reserve(telemetry, trace, placing)
  if (placing.end === 'panic') return
  charge(telemetry, trace, placing)
  if (placing.end === 'placed') publish(telemetry, trace, placing)
}

function price({ random }: Telemetry, trace: Trace, { at, placing, end }: Placing): void {
  const quote = trace.span('pricing', 'POST /quote', {
    kind: 'server',
    at: at + 1,
    ms: random.ms(7),
    parent: placing,
    attributes: http('POST', '/quote', end === 'sale' ? 500 : 200),
    error: end === 'sale' ? '' : undefined,
  })
  const prices = sql('SELECT', 'prices', 'SELECT sku, cents FROM prices WHERE sku = ANY($1)')
  trace.span('pricing', 'shop', { kind: 'client', at: at + 2, ms: random.ms(2), parent: quote, attributes: prices })
  if (end !== 'sale') return
  const text = 'An unhandled exception has occurred while executing the request.'
  trace.log('pricing', 'ERROR', text, { at: at + 5, span: quote, exception: DOTNET })
}

function reserve({ random }: Telemetry, trace: Trace, { at, placing, end }: Placing): void {
  const isPanic = end === 'panic'
  const reserving = trace.span('inventory', 'shop.inventory.Stock/Reserve', {
    kind: 'server',
    at: at + 12,
    ms: random.ms(8),
    parent: placing,
    attributes: rpc('Reserve', isPanic ? 13 : 0),
    error: isPanic ? 'panic' : undefined,
  })
  if (isPanic) {
    trace.log('inventory', 'FATAL', `panic: ${GO.message}`, { at: at + 15, span: reserving, exception: GO })
    return
  }
  const update = sql('UPDATE', 'stock', 'UPDATE stock SET count = count - $2 WHERE sku = $1')
  trace.span('inventory', 'UPDATE stock', {
    kind: 'client',
    at: at + 13,
    ms: random.ms(5),
    parent: reserving,
    attributes: update,
  })
}

function charge({ random }: Telemetry, trace: Trace, { at, ms, placing, end, order }: Placing): void {
  const isTimeout = end === 'timeout'
  const status = isTimeout ? 504 : end === 'declined' ? 402 : 201
  const charging = trace.span('payment', 'POST /charges', {
    kind: 'server',
    at: at + 24,
    ms: ms - 34,
    parent: placing,
    attributes: {
      ...http('POST', '/charges', status),
      'payment.method': random.pick(['card', 'card', 'paypal', 'sepa']),
    },
    error: isTimeout ? PYTHON.message : undefined,
    exception: isTimeout ? PYTHON : undefined,
  })
  trace.span('payment', 'POST', {
    kind: 'client',
    at: at + 26,
    ms: ms - 40,
    parent: charging,
    attributes: { ...http('POST', '/charges', isTimeout ? 0 : status), 'server.address': 'acquirer.example' },
  })
  if (end === 'declined') {
    const reason = random.pick(['insufficient_funds', 'do_not_honor', 'expired_card'])
    trace.log('payment', 'WARN', `charge of ${order} declined: ${reason}`, { at: at + ms - 12, span: charging })
  }
}

function publish({ random }: Telemetry, trace: Trace, { at, ms, placing, order }: Placing): void {
  const publishing = trace.span('orders', 'orders publish', {
    kind: 'producer',
    at: at + ms - 8,
    ms: 1.8,
    parent: placing,
    attributes: { 'messaging.system': 'kafka', 'messaging.destination.name': 'orders' },
  })
  const pack = trace.span('inventory', 'orders process', {
    kind: 'consumer',
    at: at + ms + random.ms(200),
    ms: random.ms(14),
    parent: publishing,
    attributes: { 'messaging.system': 'kafka', 'messaging.destination.name': 'orders' },
  })
  trace.log('inventory', 'INFO', `order ${order} packed`, { at: at + ms + 230, span: pack })
}
