import { Webhook } from 'standardwebhooks'
import { expect, it } from 'vitest'
import { startHostileReceiver } from '../../test/support/receivers/hostile-receiver.ts'
import { parseAllowedReceivers } from './receiver-address.ts'
import { type Delivery, type SendDeps, send } from './send.ts'
import { createWebhookSecret } from './standard-webhooks.ts'

const list = parseAllowedReceivers('127.0.0.1')
const deps: SendDeps = {
  allowed: list.ok ? list.allowed : { hosts: new Set(), addresses: expect.fail(list.fault) },
  mail: undefined,
  now: Date.now,
}

it('signs webhooks, and sends to services as they require', async () => {
  const receiver = await startHostileReceiver(socket =>
    socket.write('HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n'),
  )
  try {
    const [url, body, secret] = [
      `http://127.0.0.1:${receiver.port}/hook`,
      '{"type":"alert.fired"}',
      createWebhookSecret(),
    ]
    const delivered = { kind: 'delivered', status: 202 }
    expect(await send(deps, { channel: 'webhook', url, id: 'evt_1', body, secrets: [secret] })).toMatchObject(delivered)
    const headers = { authorization: 'GenieKey abc' }
    expect(await send(deps, { channel: 'service', url, body, headers, secrets: ['abc'] })).toMatchObject(delivered)
    const [webhook = '', service = ''] = receiver.requests
    const headerOf = (name: string) => new RegExp(`^${name}: (.*)\r$`, 'm').exec(webhook)?.[1] ?? ''
    const names = ['webhook-id', 'webhook-timestamp', 'webhook-signature']
    const sent = Object.fromEntries(names.map(name => [name, headerOf(name)]))
    expect(new Webhook(secret).verify(body, sent)).toEqual(JSON.parse(body))
    expect(service).toContain('authorization: GenieKey abc')
  } finally {
    await receiver.stop()
  }
})

it('refuses receivers that are not public, and mails without a mail server', async () => {
  const url = 'https://10.0.0.1/hook'
  expect(await send(deps, { channel: 'service', url, body: '{}', headers: {}, secrets: [] })).toMatchObject({
    kind: 'refused',
  })
  const mail: Delivery = { channel: 'email', id: 'evt_1', to: ['a@example.com'], subject: 'a', text: 'a', html: 'a' }
  expect(await send(deps, mail)).toMatchObject({ kind: 'refused' })
})
