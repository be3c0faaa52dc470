import { describe, expect, it } from 'vitest'
import { createQuerySigner, encodeStrictly } from './sign-query.ts'

const IDENTITY = { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' }
const PLACE = {
  origin: 'https://examplebucket.s3.amazonaws.com',
  region: 'us-east-1',
  signedAtMs: Date.parse('2013-05-24T00:00:00Z'),
}
const GET = { method: 'GET', path: '/test.txt', headers: {}, expiresInS: 86_400 } as const

const signed = (url: string) => new URL(url).searchParams

describe('signing a query', () => {
  it('creates the signature of the example in the documentation of S3', () => {
    const url = createQuerySigner(IDENTITY, PLACE).sign(GET)
    expect(url).toBe(
      'https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256' +
        '&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request' +
        '&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host' +
        '&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404',
    )
  })

  it('signs every given header, in the order of their names', () => {
    const signer = createQuerySigner(IDENTITY, PLACE)
    const put = { ...GET, method: 'PUT', headers: { 'content-type': 'text/plain', 'content-length': '5' } } as const
    const url = signer.sign(put)
    expect(signed(url).get('X-Amz-SignedHeaders')).toBe('content-length;content-type;host')
    const other = signer.sign({ ...put, headers: { ...put.headers, 'content-length': '6' } })
    expect(signed(other).get('X-Amz-Signature')).not.toBe(signed(url).get('X-Amz-Signature'))
  })

  it('includes the token of temporary credentials, and signs it', () => {
    const url = createQuerySigner({ ...IDENTITY, sessionToken: 'a+/=' }, PLACE).sign(GET)
    expect(signed(url).get('X-Amz-Security-Token')).toBe('a+/=')
    expect(url).not.toContain('aeeed9bb')
  })
})

it('encodes all but the unreserved characters of RFC 3986', () => {
  expect(encodeStrictly("aZ09-._~ /+!'()*ü")).toBe('aZ09-._~%20%2F%2B%21%27%28%29%2A%C3%BC')
})
