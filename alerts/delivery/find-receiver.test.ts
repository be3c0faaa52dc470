import { describe, expect, it } from 'vitest'
import { findReceiver } from './find-receiver.ts'
import { type AllowedReceivers, PUBLIC_ONLY, parseAllowedReceivers } from './receiver-address.ts'

const v4 = (address: string) => ({ address, family: 4 })

function allowing(text: string): AllowedReceivers {
  const result = parseAllowedReceivers(text)
  if (!result.ok) throw new Error(result.fault)
  return result.allowed
}

const find = (url: string, addresses: readonly string[] = ['8.8.8.8'], allowed = PUBLIC_ONLY) =>
  findReceiver({ lookup: async () => addresses.map(v4), allowed }, url)

describe('the URL of a receiver', () => {
  it.each([
    ['ftp://hooks.example/', 'the URL must begin with https://'],
    ['file:///etc/passwd', 'the URL must begin with https://'],
    ['http://hooks.example/', 'the URL must begin with https://'],
    ['https://user@hooks.example/', 'the URL must have no user and no password'],
    ['https://:secret@hooks.example/', 'the URL must have no user and no password'],
    ['https://hooks.example:25/', 'the port must be 443, or 1024 or above'],
    ['https://hooks.example:22/', 'the port must be 443, or 1024 or above'],
    ['https://256.256.256.256/', 'the URL is invalid'],
    ['hooks.example', 'the URL is invalid'],
    [`https://hooks.example/${'a'.repeat(2_048)}`, 'the URL is invalid'],
  ])('%s is refused', async (url, reason) => {
    expect(await find(url)).toEqual({ kind: 'refused', reason })
  })

  it('may have the port 443 or an unprivileged one', async () => {
    for (const url of ['https://hooks.example/', 'https://hooks.example:443/', 'https://hooks.example:8443/a?b=c']) {
      expect(await find(url)).toEqual({ url: new URL(url), addresses: [v4('8.8.8.8')] })
    }
  })

  it('may have any port and no TLS if an operator allows its host or its address', async () => {
    for (const allowed of [allowing('hooks.internal'), allowing('10.0.0.0/8')]) {
      expect(await find('http://Hooks.internal:81/', ['10.0.0.1'], allowed)).toMatchObject({ addresses: [{}] })
    }
    // An allowed range allows nothing to the public receivers beside it.
    expect(await find('http://hooks.example/', ['8.8.8.8'], allowing('10.0.0.0/8'))).toMatchObject({ kind: 'refused' })
    expect(await find('http://hooks.example/', ['8.8.8.8', '10.0.0.1'], allowing('10.0.0.0/8'))).toMatchObject({
      kind: 'refused',
    })
  })
})

describe('a name server', () => {
  it('cannot hide a private address among public ones', async () => {
    for (const addresses of [['10.0.0.1'], ['8.8.8.8', '127.0.0.1'], ['169.254.169.254', '8.8.8.8']]) {
      expect(await find('https://hooks.example/', addresses)).toMatchObject({ kind: 'refused' })
    }
  })

  it('is refused at the delivery for which it changes a public address to a private one', async () => {
    const answers = [['8.8.8.8'], ['127.0.0.1']]
    const deps = { lookup: async () => (answers.shift() ?? []).map(v4), allowed: PUBLIC_ONLY }
    expect(await findReceiver(deps, 'https://rebinding.example/')).toMatchObject({ addresses: [v4('8.8.8.8')] })
    expect(await findReceiver(deps, 'https://rebinding.example/')).toMatchObject({ kind: 'refused' })
    expect(answers).toEqual([])
  })

  it('that has no address or does not answer makes the attempt fail', async () => {
    expect(await find('https://hooks.example/', [])).toEqual({
      kind: 'failed',
      reason: 'the name of the receiver has no address',
    })
    const failing = (code: string) => async () => {
      throw Object.assign(new Error(`${code} hooks.example`), { code })
    }
    const found = (code: string) =>
      findReceiver({ lookup: failing(code), allowed: PUBLIC_ONLY }, 'https://hooks.example/')
    expect(await found('ENOTFOUND')).toEqual({ kind: 'failed', reason: 'the name of the receiver has no address' })
    expect(await found('ENODATA')).toEqual({ kind: 'failed', reason: 'the name of the receiver has no address' })
    expect(await found('ETIMEOUT')).toMatchObject({
      kind: 'failed',
      reason: 'the name of the receiver could not be looked up',
    })
  })
})
