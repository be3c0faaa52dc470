import { Worker } from 'node:worker_threads'

export interface Request {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** Sends the requests and wakes the other thread. Runs in a thread of its own, as CommonJS. */
const SENDER = `
const { workerData } = require('node:worker_threads')
const left = new Int32Array(workerData.left)
for (const { url, headers, body } of workerData.requests) {
  const end = () => { if (Atomics.sub(left, 0, 1) === 1) Atomics.notify(left, 0) }
  const { env: ownEnvironment } = process
  try {
    const { request } = require(url.startsWith('https:') ? 'node:https' : 'node:http')
    request(url, { method: 'POST', headers: { ...headers, 'content-length': body.length } }, response => response.resume())
      .on('error', () => {}).on('close', end).end(body)
  } catch { end() }
}
`

/**
 * Sends requests while this thread stands still, so that nothing of the application runs in between: that is all a process can do
 * whose `exit` event was emitted. Returns after the answers or the deadline, and never throws.
 */
export function sendBlocking(requests: readonly Request[], deadlineMs: number): void {
  if (requests.length === 0) return
  const left = new SharedArrayBuffer(4)
  const counter = new Int32Array(left)
  counter[0] = requests.length
  const { env: ownEnvironment } = process
  try {
    const worker = new Worker(SENDER, {
      eval: true,
      // Neither `--import` nor `NODE_OPTIONS` may load this package there again.
      execArgv: [],
      env: { ...ownEnvironment, NODE_OPTIONS: '' },
      workerData: { left, requests },
    })
    worker.unref()
    const endsAt = performance.now() + deadlineMs
    for (let count = requests.length; count > 0; count = Atomics.load(counter, 0)) {
      if (Atomics.wait(counter, 0, count, endsAt - performance.now()) === 'timed-out') break
    }
    void worker.terminate()
  } catch (error) {
    process.stderr.write(`penstock: the last records were not sent: ${String(error)}\n`)
  }
}
