import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { decodeJwt, exportPKCS8, exportSPKI, generateKeyPair } from 'jose'
import { z } from 'zod'
import { HOUR_S } from '../../../schemas/units.ts'
import { newId } from '../../../shared/directory/directory.ts'
import { generateKey } from '../../../shared/ids/credentials.ts'
import { LOCAL_AUDIENCE, LOCAL_ISSUER, signLocalSession } from '../../../shared/ids/local-session-token.ts'
import { writePrivateJson } from './private-file.ts'

/** Issuer of the session tokens of `npm start`. */
export const AUTH_ISSUER = LOCAL_ISSUER
/** Audience of the session tokens of `npm start`. */
export const AUTH_AUDIENCE = LOCAL_AUDIENCE

/** Passwords are hex, because URLs contain them as they are. */
const secretsSchema = z.object({
  workspaceId: z.string(),
  workspaceSlug: z.string(),
  userId: z.string(),
  surfaceId: z.string(),
  publicKey: z.string(),
  publicKeyId: z.string(),
  secretKey: z.string(),
  secretKeyId: z.string(),
  s3AccessKeyId: z.string(),
  s3SecretAccessKey: z.string(),
  /** Keys that sign and verify session tokens, as PEM (PKCS #8 and SPKI). */
  authPrivateKey: z.string(),
  authPublicKey: z.string(),
  sessionToken: z.string(),
  createdAt: z.string(),
  /** Pepper from which the secrets of workspace keys are derived. */
  keyPepper: z.string(),
  redisPassword: z.string(),
  directoryRedisPassword: z.string(),
  clickhousePassword: z.string(),
})

/** Ids, keys and tokens that a local installation creates once and keeps. */
export type LocalSecrets = z.infer<typeof secretsSchema>

/** It is printed, so that it may be in logs. `penstock token` makes others. */
const TOKEN_LIFETIME_SECONDS = 12 * HOUR_S
/** A start makes a new one, unless another process has just done so. */
const RENEW_BEFORE_SECONDS = 11 * HOUR_S

/** Reads the secrets of a directory, or creates them. Replaces a session token that expires soon. */
export async function loadSecrets(directory: string, now: () => number = Date.now): Promise<LocalSecrets> {
  const path = join(directory, 'secrets.json')
  const kept = await readSecrets(path)
  const nowSeconds = Math.floor(now() / 1_000)
  if (kept && (decodeJwt(kept.sessionToken).exp ?? 0) - nowSeconds > RENEW_BEFORE_SECONDS) {
    return kept
  }
  const identity = kept ?? (await makeIdentity(now))
  const secrets = { ...identity, sessionToken: await signSessionToken(identity, nowSeconds) }
  await writePrivateJson(path, secrets)
  return secrets
}

async function readSecrets(path: string): Promise<LocalSecrets | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  const result = secretsSchema.safeParse(JSON.parse(text))
  if (!result.success) throw new Error(`${path} is invalid: remove it, and the next start creates new keys`)
  return result.data
}

async function makeIdentity(now: () => number): Promise<Omit<LocalSecrets, 'sessionToken'>> {
  const { publicKey, privateKey } = await generateKeyPair('EdDSA', { extractable: true })
  return {
    workspaceId: newId('ws'),
    workspaceSlug: 'local',
    userId: 'user_local',
    surfaceId: newId('srf'),
    publicKey: generateKey('public'),
    publicKeyId: newId('key'),
    secretKey: generateKey('secret'),
    secretKeyId: newId('key'),
    s3AccessKeyId: randomBytes(10).toString('hex'),
    s3SecretAccessKey: randomBytes(20).toString('hex'),
    authPrivateKey: await exportPKCS8(privateKey),
    authPublicKey: await exportSPKI(publicKey),
    createdAt: new Date(now()).toISOString(),
    keyPepper: randomBytes(32).toString('base64url'),
    redisPassword: randomBytes(24).toString('hex'),
    directoryRedisPassword: randomBytes(24).toString('hex'),
    clickhousePassword: randomBytes(24).toString('hex'),
  }
}

function signSessionToken(
  identity: Pick<LocalSecrets, 'authPrivateKey' | 'userId' | 'workspaceSlug'>,
  nowSeconds: number,
): Promise<string> {
  return signLocalSession({
    privateKey: identity.authPrivateKey,
    userId: identity.userId,
    org: identity.workspaceSlug,
    issuedAt: nowSeconds,
    expiresAt: nowSeconds + TOKEN_LIFETIME_SECONDS,
  })
}
