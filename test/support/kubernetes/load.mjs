/**
 * Sends exports at a steady rate from inside the cluster, each with a trace of its own, and prints what became of them when it ends.
 * Runs in the image of the product, so it imports nothing. LOAD is JSON: url, key, run (16 hex digits, the beginning of all trace
 * ids), spans (of an export), and phases, a list of seconds and exports per second. SIGTERM ends it early.
 */
const { url, key, run, spans, phases } = JSON.parse(process.env.LOAD ?? '')
const TICK_MS = 20
/** Above it, exports are left out and counted, as a client with a full queue would. */
const MAX_IN_FLIGHT = 400
const MAX_FAILURES = 5

const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'cluster-test' } }] }
const template = JSON.stringify({
  resourceSpans: [{ resource, scopeSpans: [{ spans: Array.from({ length: spans }, (_, i) => spanOf(i)) }] }],
})
const report = { sent: 0, skipped: 0, statuses: {}, errors: {}, unconfirmed: [], failures: [], maxMs: 0 }
let inFlight = 0
let stopping = false
process.once('SIGTERM', () => {
  stopping = true
})

function spanOf(i) {
  const attribute = (name, value) => ({ key: name, value: { stringValue: value } })
  return {
    traceId: 'TRACE_ID',
    spanId: (i + 1).toString(16).padStart(16, '0'),
    name: `GET /items/${i % 17}`,
    kind: 2,
    startTimeUnixNano: '1790000000000000000',
    endTimeUnixNano: '1790000000042000000',
    attributes: [
      attribute('http.request.method', 'GET'),
      attribute('url.path', `/items/${i % 17}/parts/${i}`),
      attribute(
        'user_agent.original',
        'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0',
      ),
      { key: 'http.response.status_code', value: { intValue: '200' } },
    ],
  }
}

async function send(number) {
  const body = template.replaceAll('TRACE_ID', run + number.toString(16).padStart(16, '0'))
  const startedAt = performance.now()
  inFlight += 1
  try {
    const headers = { 'x-service-public-key': key, 'content-type': 'application/json' }
    const response = await fetch(`${url}/drain/v1/traces`, { method: 'POST', headers, body })
    const text = await response.text()
    report.statuses[response.status] = (report.statuses[response.status] ?? 0) + 1
    if (response.status !== 200) fail(number, startedAt, `${response.status} ${text}`)
  } catch (error) {
    const code = error.cause?.code ?? error.name
    report.errors[code] = (report.errors[code] ?? 0) + 1
    fail(number, startedAt, code)
  } finally {
    report.maxMs = Math.max(report.maxMs, Math.round(performance.now() - startedAt))
    inFlight -= 1
  }
}

function fail(number, startedAt, reason) {
  report.unconfirmed.push(number)
  const after = `${Math.round(startedAt / 1_000)} s`
  if (report.failures.length < MAX_FAILURES) report.failures.push(`${after}: ${reason.slice(0, 200)}`)
}

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))
console.log('started')
for (const [seconds, perSecond] of phases) {
  const startedAt = performance.now()
  let due = 0
  while (!stopping && performance.now() - startedAt < seconds * 1_000) {
    const until = ((performance.now() - startedAt) / 1_000) * perSecond
    for (; due < until; due += 1) {
      if (inFlight >= MAX_IN_FLIGHT) report.skipped += 1
      else void send(report.sent++)
    }
    await pause(TICK_MS)
  }
}
while (inFlight > 0) await pause(TICK_MS)
console.log(JSON.stringify(report))
process.exit(0)
