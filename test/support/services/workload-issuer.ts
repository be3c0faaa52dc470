import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, SignJWT } from 'jose'
import { FAR_EXPIRY } from './api.ts'

/** Issuer that signs tokens of workloads and publishes its key for an API with these settings. */
export interface WorkloadIssuer {
  readonly settings: Readonly<Record<string, string>>
  /** Signs a token that is valid unless its claims are changed. */
  sign(claims: Readonly<Record<string, unknown>>): Promise<string>
  stop(): Promise<void>
}

/** Starts an issuer of workload tokens. */
export async function startWorkloadIssuer(): Promise<WorkloadIssuer> {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const set = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'w1' }] })
  const server = createServer((_, response) => response.end(set))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const [iss, aud] = ['https://workloads.test', 'penstock-workloads']
  return {
    settings: {
      WORKLOAD_ISSUER: iss,
      WORKLOAD_AUDIENCE: aud,
      WORKLOAD_JWKS_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    },
    sign: claims =>
      new SignJWT({ iss, aud, sub: 'job-7', exp: FAR_EXPIRY, ...claims })
        .setProtectedHeader({ alg: 'EdDSA', kid: 'w1' })
        .sign(privateKey),
    stop: () => new Promise(resolve => server.close(() => resolve())),
  }
}
