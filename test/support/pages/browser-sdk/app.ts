import { init } from '../../../../packages/browser/src/index.ts'

/** Settings that the page server has written into the page. */
interface Settings {
  readonly key: string
  readonly options?: object
}

/** The application of the tests: three lines, and what tests call. */
const { key, options } = (globalThis as unknown as { settings: Settings }).settings
const penstock = init({
  url: '/telemetry',
  key,
  service: 'shop-page',
  version: '1.4.2',
  environment: 'test',
  ...options,
})

/** Does what an application does: requests, errors, logs and navigations. */
async function use(): Promise<void> {
  penstock.identify('user-42', { name: 'Anna', email: 'anna@example.org', traits: { plan: 'team' } })
  await fetch('/api/quote', { method: 'POST', body: '{}' })
  await new Promise(resolve => {
    const xhr = new XMLHttpRequest()
    xhr.open('GET', '/api/broken')
    xhr.addEventListener('loadend', resolve)
    xhr.send()
  })
  penstock.captureException(new Error('the quote failed', { cause: new TypeError('no price') }), { 'cart.id': 17 })
  console.error('the cart is', { empty: true })
  history.pushState({}, '', '/checkout')
  setTimeout(() => {
    throw new RangeError('not caught')
  }, 0)
  void Promise.reject(new Error('nor this'))
}

/** Stops the telemetry. Returns which of the methods that it has patched are those of the browser again. */
async function stop(): Promise<boolean[]> {
  await penstock.stop()
  const { open, send } = XMLHttpRequest.prototype
  const native = [fetch, history.pushState, history.replaceState, open, send, console.error]
  return native.map(method => Function.prototype.toString.call(method).includes('[native code]'))
}

/** Returns when the page was painted and when it loaded the recorder. */
function times() {
  const [paint] = performance.getEntriesByName('first-contentful-paint')
  const recorder = performance.getEntriesByType('resource').find(({ name }) => name.includes('/recorder-'))
  return { paint: paint?.startTime ?? 0, recorder: recorder?.startTime ?? 0 }
}

// Tests call these.
Object.assign(globalThis, { penstock, use, stop, times })

/** Numbers what happens on the page, and states it on the console, where the test reads it. */
let marks = 0
const life = crypto.randomUUID()
function mark(): void {
  const id = `${life}:${marks++}`
  penstock.log('info', `mark ${id}`, { mark: id })
  console.debug(`mark ${id} ${Date.now()}`)
}
if (new URLSearchParams(location.search).has('marks')) setInterval(mark, 50)
