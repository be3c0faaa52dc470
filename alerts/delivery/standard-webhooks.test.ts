import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { verifiesV1a } from '../../test/support/receivers/verify-v1a.ts'
import { createWebhookKeyPair, createWebhookSecret, publicKeyOf, webhookHeaders } from './standard-webhooks.ts'

const id = 'evt_2KWPBgLlAfxdpx2AI54pPJ85f4W'
const body = '{"type":"alert.fired","data":{"title":"Größe"}}'

describe('the headers of a webhook', () => {
  it('are those that the library of Standard Webhooks accepts', () => {
    const secret = createWebhookSecret()
    const headers = webhookHeaders({ id, body, secrets: [secret] }, Date.now())
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow()
    expect(() => new Webhook(createWebhookSecret()).verify(body, headers)).toThrow()
    expect(headers['webhook-id']).toBe(id)
  })

  it('are those of the example that the library signs', () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const headers = webhookHeaders({ id, body, secrets: [secret] }, 1_674_087_231_999)
    expect(headers['webhook-timestamp']).toBe('1674087231')
    expect(headers['webhook-signature']).toBe(new Webhook(secret).sign(id, new Date(1_674_087_231_000), body))
  })

  it('have a signature for each secret while one replaces the other', () => {
    const [secret, next] = [createWebhookSecret(), createWebhookSecret()]
    const headers = webhookHeaders({ id, body, secrets: [next, secret] }, Date.now())
    for (const one of [secret, next]) expect(new Webhook(one).verify(body, headers)).toEqual(JSON.parse(body))
    expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
  })

  it('have a signature of Ed25519 for a pair of keys, and one of each kind beside each other', () => {
    const [secretKey, secret] = [createWebhookKeyPair(), createWebhookSecret()]
    const publicKey = publicKeyOf(secretKey) ?? ''
    expect(publicKeyOf(secret)).toBeUndefined()
    const headers = webhookHeaders({ id, body, secrets: [secretKey, secret] }, Date.now())
    expect(verifiesV1a(publicKey, headers, body)).toBe(true)
    expect(verifiesV1a(publicKey, headers, `${body} `)).toBe(false)
    expect(verifiesV1a(publicKeyOf(createWebhookKeyPair()) ?? '', headers, body)).toBe(false)
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
    expect([publicKey, secretKey]).toEqual([
      expect.stringMatching(/^whpk_[\w+/]{43}=$/),
      expect.stringMatching(/^whsk_[\w+/]{86}==$/),
    ])
  })

  it('are refused for a secret of another form, which the message does not contain', () => {
    const invalid = [
      ...[
        '',
        'whsec_',
        'whsec_AAAA',
        'whsec_!!!',
        'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
        publicKeyOf(createWebhookKeyPair()) ?? '',
      ],
      ...[`whsec_${'A'.repeat(32)}!`, `whsec_${'A'.repeat(31)}`, `whsec_${'-'.repeat(32)}`, `whsec_${'A'.repeat(88)}`],
      ...[`whsk_${'A'.repeat(44)}`, `whsk_${'A'.repeat(85)}===`],
    ]
    const rule = /^the secret of a webhook must be whsec_ and 24 to 64 bytes in base64, or whsk_ and .* key pair$/
    for (const secret of invalid) {
      expect(() => webhookHeaders({ id, body, secrets: [secret] }, 0), secret).toThrow(rule)
    }
    expect(() => webhookHeaders({ id, body, secrets: [] }, 0)).toThrow('needs a secret')
    expect(() => webhookHeaders({ id: 'a.b', body, secrets: [createWebhookSecret()] }, 0)).toThrow('no dot')
  })
})
