// Runs each bug, and writes what OpenTelemetry's SDK records of it as a line of JSON; and as util.inspect shows it.
import { inspect } from 'node:util'
import * as shop from './shop.js'

function emit(scenario, error) {
  const { code, name, message, stack } = error
  const type = code ? String(code) : name
  console.log(JSON.stringify({ scenario, type, message, stacktrace: stack }))
  console.log(JSON.stringify({ scenario: `inspect:${scenario}`, type: name, message, stacktrace: inspect(error) }))
}

async function bug(scenario, body) {
  try {
    await body()
  } catch (error) {
    emit(scenario, error)
  }
}

const cart = new shop.Cart()
await bug('total', () => cart.total(3))
await bug('total-other', () => cart.total(77))
await bug('order-total', () => new shop.Order().total(3))
await bug('size', () => cart.size)
await bug('length', () => cart.length)
await bug('owner-name', () => shop.Cart.ownerName(cart))
await bug('owner-mail', () => shop.ownerMail(cart))
await bug('owner-city', () => shop.ownerCity(cart))
await bug('hidden', () => cart.hidden())
await bug('charge', () => shop.charge(17))
await bug('charge-other', () => shop.charge('ada@shop.example'))
await bug('charge-lines', () => shop.charge('17\n    at refund (/srv/shop/src/pay.js:3:9)\n    at x'))
await bug('refund', () => shop.refund(17))
await bug('read-order', () => shop.readOrder('/srv/none/17'))
await bug('read-order-other', () => shop.readOrder('/srv/none/4711'))
await bug('read-cart', () => shop.readCart('/srv/none/17'))
await bug('fetch-rates', () => shop.fetchRates('http://127.0.0.1:9/'))
await bug('fetch-rates-other', () => shop.fetchRates('http://127.0.0.1:11/x'))
await bug('fetch-stock', () => shop.fetchStock('http://127.0.0.1:9/'))
await bug('axios-rates', () => shop.axiosRates('http://127.0.0.1:9/'))
await bug('axios-rates-other', () => shop.axiosRates('http://127.0.0.1:11/x?a=1'))
await bug('axios-stock', () => shop.axiosStock('http://127.0.0.1:9/'))
await bug('query-orders', () => shop.queryOrders(9))
await bug('query-orders-other', () => shop.queryOrders(11))
await bug('query-users', () => shop.queryUsers(9))
await bug('parse-order', () => shop.parseOrder('{no}'))
await bug('parse-order-other', () => shop.parseOrder('{"a": no}'))
await bug('parse-cart', () => shop.parseCart('{no}'))
await bug('checkout-json', () => shop.checkout('json'))
await bug('checkout-mail', () => shop.checkout('mail'))
await bug('both-price', () =>
  shop.both(
    () => shop.loadPrice({}),
    () => shop.loadPrice({}),
  ),
)
await bug('both-read', () =>
  shop.both(
    () => shop.readOrder('/srv/none/1'),
    () => shop.readCart('/srv/none/1'),
  ),
)
await bug('both-read-other', () =>
  shop.both(
    () => shop.readOrder('/srv/none/2'),
    () => shop.readCart('/srv/none/3'),
  ),
)
await bug('load-price', () => shop.loadPrice({}))
await bug('load-count', () => shop.loadCount({}))
await bug('walk-2', () => shop.walk(cart, 2))
await bug('walk-6', () => shop.walk(cart, 6))
await bug('endless', () => shop.endless(0))
await bug('endless-too', () => shop.endlessToo(0))
await bug('sum', () => shop.sum([{}]))
await bug('max', () => shop.max([{}]))
await bug('retry-1', () => shop.retry(1))
await bug('retry-3', () => shop.retry(3))
await bug('later-mail', () => shop.later(() => shop.ownerMail(cart)))
await bug('later-city', () => shop.later(() => shop.ownerCity(cart)))
// biome-ignore lint/security/noGlobalEval: the stack of such code is what is recorded
await bug('eval', () => globalThis.eval('function added() { return none.price } added()'))
