import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { ConfigError, parseConfig } from '../shared/runtime/config.ts'
import { type ApiConfig, apiConfigSchema, tokenIssuers as issuersOf } from './config.ts'

const pemOf = ({ publicKey }: { publicKey: KeyObject }) => String(publicKey.export({ type: 'spki', format: 'pem' }))
const ec = (namedCurve: string) => pemOf(generateKeyPairSync('ec', { namedCurve }))
const rsa = (modulusLength: number) => pemOf(generateKeyPairSync('rsa', { modulusLength }))

const ED25519 = pemOf(generateKeyPairSync('ed25519'))
const REQUIRED = {
  DIRECTORY_REDIS_URL: 'redis://directory:6379',
  AUTH_ISSUER: 'https://login.example',
  AUTH_AUDIENCE: 'penstock',
  KEY_PEPPER: 'p'.repeat(32),
}
const tokenIssuers = (config: ApiConfig) => issuersOf(config, pino({ level: 'silent' }), Date.now)
const parse = (env: Record<string, string>) => parseConfig(apiConfigSchema, { ...REQUIRED, ...env })

describe('the configuration of the API', () => {
  it('accepts a public key with escaped line breaks, and allows only the algorithm that fits it', () => {
    const keys = {
      EdDSA: ED25519,
      ES256: ec('P-256'),
      RS256: rsa(2048),
    }
    for (const [algorithm, key] of Object.entries(keys)) {
      const config = parse({ AUTH_PUBLIC_KEY: key.replaceAll('\n', '\\n') })
      expect(tokenIssuers(config)).toMatchObject([{ kind: 'session', algorithms: [algorithm] }])
    }
  })

  it.each([
    ['a curve that no accepted algorithm uses', ec('secp384r1')],
    ['a short RSA key', rsa(1024)],
    ['a private key', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----'],
    ['text that is not a key', 'secret'],
  ])('refuses %s', (_, key) => {
    expect(() => parse({ AUTH_PUBLIC_KEY: key })).toThrow(/AUTH_PUBLIC_KEY must be the SPKI PEM/)
  })

  it('requires either a key or a JWKS', () => {
    expect(() => parse({})).toThrow(ConfigError)
    expect(() => parse({ AUTH_PUBLIC_KEY: ED25519, AUTH_JWKS_URL: 'https://login.example/jwks' })).toThrow(ConfigError)
    expect(tokenIssuers(parse({ AUTH_JWKS_URL: 'https://login.example/jwks' }))).toMatchObject([
      { algorithms: ['EdDSA', 'ES256', 'RS256'] },
    ])
  })

  it('refuses a JWKS address with a user or password, and does not repeat it', () => {
    for (const address of ['https://u:hidden@login.example/jwks', 'https://hidden@login.example/jwks']) {
      const fault = () => parse({ AUTH_JWKS_URL: address })
      expect(fault).toThrow(/AUTH_JWKS_URL must not have a user name or password/)
      expect(fault).not.toThrow(/hidden/)
    }
    expect(() => parse({ AUTH_JWKS_URL: 'login.example' })).toThrow(ConfigError)
  })

  it('requires a pepper of at least 32 bytes', () => {
    const key = { AUTH_PUBLIC_KEY: ED25519 }
    expect(parse({ ...key, KEY_PEPPER: 'ä'.repeat(16) }).KEY_PEPPER).toHaveLength(16)
    expect(() => parse({ ...key, KEY_PEPPER: 'p'.repeat(31) })).toThrow(/KEY_PEPPER must have at least 32 bytes/)
    expect(() => parse({ ...key, KEY_PEPPER: '' })).toThrow(/KEY_PEPPER/)
  })

  it('requires all settings of workloads or none, and another issuer than that of sessions', () => {
    const workload = {
      WORKLOAD_ISSUER: 'w',
      WORKLOAD_JWKS_URL: 'https://w.example/jwks',
      WORKLOAD_AUDIENCE: 'penstock',
    }
    const key = { AUTH_PUBLIC_KEY: ED25519 }
    expect(tokenIssuers(parse({ ...key, ...workload })).map(({ kind }) => kind)).toEqual(['session', 'workload'])
    expect(() => parse({ ...key, WORKLOAD_ISSUER: 'w' })).toThrow(/set all of/)
    expect(() => parse({ ...key, ...workload, WORKLOAD_ISSUER: REQUIRED.AUTH_ISSUER })).toThrow(/must differ/)
  })
})
