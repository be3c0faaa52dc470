import { loadOrders, loadRates, loadStock, loadUsers } from './loads.js'
import { Cart, charge, discount, priceOf, refund } from './prices.js'

const page = globalThis
page.bugs = []
//2 page.edition = ['second', 'edition']
page.on = (scenario, run) => page.bugs.push([scenario, run])

for (const [other, user] of [
  ['', 17],
  ['-other', 'ada@shop.example'],
]) {
  page.on(`total${other}`, () => new Cart([]).total(user))
  page.on(`charge${other}`, () => charge(user))
  page.on(`orders${other}`, () => loadOrders(`data.json?user=${user}`))
}
page.on('price', () => priceOf({}))
page.on('owner', () => new Cart([]).owner())
page.on('discount', () => discount({}, 2))
page.on('refund', () => refund('17'))
page.on('users', () => loadUsers('data.json'))
page.on('stock', () => loadStock('data.json'))
page.on('rates', () => loadRates('data.json'))
page.on('parse', () => JSON.parse('{no}'))
page.on('missing', () => fetch('http://127.0.0.1:1/'))
// Four anonymous callbacks of one bundle, two of them of promises.
page.on('callback-1', () => [{}].map(item => item.a.b))
page.on('callback-2', () => [{}].map(item => item.a.b + 1))
page.on('callback-3', () => Promise.resolve({}).then(item => item.a.b))
page.on('callback-4', () => Promise.resolve({}).then(item => item.a.b + 1))
page.on('timer-1', () => new Promise((_, reject) => setTimeout(() => attempt(() => page.none.first, reject))))
page.on('timer-2', () => new Promise((_, reject) => setTimeout(() => attempt(() => page.none.first + 1, reject))))
page.on('lazy-render', async () => (await import('./lazy.js')).render({}))
page.on('lazy-measure', async () => (await import('./lazy.js')).measure({}))

function attempt(body, reject) {
  try {
    body()
  } catch (error) {
    reject(error)
  }
}

async function runAll() {
  const found = []
  // All bugs run in a later task, without the frame of the module.
  await null
  for (const [scenario, run] of page.bugs) {
    try {
      await run()
    } catch (error) {
      found.push({ scenario, type: error.name, message: error.message, stacktrace: String(error.stack) })
    }
  }
  await fetch('/recorded', { method: 'POST', body: JSON.stringify(found) })
}
runAll()
