import type { Exception } from './exceptions.ts'
import type { Telemetry, Trace, Visit } from './telemetry.ts'

/** A checkout of 2.4.0 with a product that is on sale: the quote has no price for it, and the page fails on the answer. */
export function failCheckout(telemetry: Telemetry, visit: Visit, at: number, exception: Exception): Trace {
  const { random } = telemetry
  const trace = telemetry.trace(visit)
  const quote = { 'http.request.method': 'POST', 'http.route': '/api/quote', 'http.response.status_code': 200 }
  const ms = random.ms(60)
  const root = trace.span('shop-web', 'submit #checkout', {
    kind: 'internal',
    at: at - ms - 20,
    ms: ms + 20,
    attributes: { 'url.full': 'https://shop.example/' },
    error: exception.message,
    exception,
  })
  const call = trace.span('shop-web', 'POST', {
    kind: 'client',
    at: at - ms - 15,
    ms: ms + 12,
    parent: root,
    attributes: { 'url.full': 'https://shop.example/api/quote', ...quote },
  })
  const entry = trace.span('gateway', 'POST /api/quote', {
    kind: 'server',
    at: at - ms - 8,
    ms,
    parent: call,
    attributes: quote,
  })
  const pricing = trace.span('pricing', 'POST /quote', {
    kind: 'server',
    at: at - ms - 4,
    ms: ms - 8,
    parent: entry,
    attributes: { ...quote, 'http.route': '/quote' },
  })
  trace.span('pricing', 'shop', {
    kind: 'client',
    at: at - ms,
    ms: ms / 2,
    parent: pricing,
    attributes: {
      'db.system.name': 'postgresql',
      'db.query.text': 'SELECT sku, cents FROM prices WHERE sku = ANY($1)',
    },
  })
  trace.log('pricing', 'WARN', 'no price of C-4: its sale has begun, and the price list is of yesterday', {
    at: at - ms / 2,
    span: pricing,
    attributes: { 'product.sku': 'C-4', 'log.category': 'Shop.Pricing.Sales' },
  })
  trace.log('gateway', 'INFO', 'POST /api/quote 200', { at: at - 8, span: entry })
  return trace
}

/** A coupon that the page cannot read, in any release. */
export function failCoupon(telemetry: Telemetry, visit: Visit, at: number, exception: Exception): void {
  telemetry
    .trace(visit)
    .span('shop-web', 'submit #coupon', { kind: 'internal', at, ms: 3, error: exception.message, exception })
}
