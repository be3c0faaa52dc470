import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A webhook as it arrived. */
interface ReceivedWebhook {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A receiver of webhooks on the loopback address. */
export interface WebhookReceiver {
  readonly url: string
  /** In the order of their arrival, also those that were not accepted. */
  readonly received: readonly ReceivedWebhook[]
  /** Status of the answers from now on, by the path of the request. 204 unless set. */
  readonly answers: Map<string, number>
  stop(): Promise<void>
}

/** Starts a receiver of webhooks. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = []
  const answers = new Map<string, number>()
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]))
    received.push({ headers, body: Buffer.concat(parts).toString('utf8') })
    response.writeHead(answers.get(request.url ?? '') ?? 204).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    ...{ url: `http://127.0.0.1:${port}`, received, answers },
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
