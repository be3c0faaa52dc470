import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { z } from 'zod'
import { parseJson } from '../shared/json/parse-json.ts'

const storesSchema = z.object({
  redisUrl: z.string(),
  directoryRedisUrl: z.string(),
  clickhouseUrl: z.string(),
  s3: z.object({
    endpoint: z.string(),
    bucket: z.string(),
    accessKeyId: z.string(),
    secretAccessKey: z.string(),
  }),
})

/** The part of an installation's secrets that signs session tokens: a private key as PKCS #8 in PEM. */
const secretsSchema = z.object({ authPrivateKey: z.string() })

type Environment = Readonly<Record<string, string | undefined>>

const STORES = ['REDIS_URL', 'DIRECTORY_REDIS_URL', 'CLICKHOUSE_URL', 'S3_ENDPOINT'] as const

/**
 * Returns the environment of a command. If it names no store and `npm start` has run in this directory, the stores of
 * that installation are added, so that the command needs no settings.
 */
export async function withLocalStores(env: Environment, directory: string): Promise<Environment> {
  if (STORES.some(name => env[name] || env[`${name}_FILE`])) return env
  const text = await readIfPresent(credentialsPath(env, directory))
  if (text === undefined) return env
  const { redisUrl, directoryRedisUrl, clickhouseUrl, s3 } = storesSchema.parse(JSON.parse(text))
  return {
    ...env,
    REDIS_URL: redisUrl,
    DIRECTORY_REDIS_URL: directoryRedisUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    S3_ENDPOINT: s3.endpoint,
    S3_BUCKET: s3.bucket,
    AWS_ACCESS_KEY_ID: s3.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
  }
}

const serviceSchema = z.object({ baseUrl: z.url({ protocol: /^https?$/ }), secretKey: z.string() })

/** Returns the URL and the secret key of the local installation, or undefined if `npm start` has never run here. */
export async function findLocalService(
  env: Environment,
  directory: string,
): Promise<z.infer<typeof serviceSchema> | undefined> {
  const text = await readIfPresent(credentialsPath(env, directory))
  return text === undefined ? undefined : serviceSchema.parse(JSON.parse(text))
}

const apiSchema = z.object({ baseUrl: z.url({ protocol: /^https?$/ }), sessionToken: z.string() })

/** Returns the URL of the local installation and a token of its user, or undefined if `npm start` has never run here. */
export async function findLocalApi(
  env: Environment,
  directory: string,
): Promise<z.infer<typeof apiSchema> | undefined> {
  const text = await readIfPresent(credentialsPath(env, directory))
  return text === undefined ? undefined : apiSchema.parse(JSON.parse(text))
}

const demoSchema = z.object({ ...serviceSchema.shape, ...apiSchema.shape, publicKey: z.string() })

/** Returns what the demo needs of the local installation, or undefined if `npm start` has never run here. */
export async function findLocalDemo(
  env: Environment,
  directory: string,
): Promise<z.infer<typeof demoSchema> | undefined> {
  const text = await readIfPresent(credentialsPath(env, directory))
  return text === undefined ? undefined : demoSchema.parse(JSON.parse(text))
}

/** Returns the private key that signs session tokens of the local installation, or undefined if there is none. */
export async function readSigningKey(env: Environment, directory: string): Promise<string | undefined> {
  const path = resolve(localDirectory(env, directory), 'secrets.json')
  const text = await readIfPresent(path)
  if (text === undefined) return undefined
  const secrets = secretsSchema.safeParse(parseJson(text))
  if (!secrets.success) throw new Error(`${path} is not a file that "npm start" has written`)
  return secrets.data.authPrivateKey
}

/** Returns the directory in which `npm start` keeps its files. */
export function localDirectory(env: Environment, directory: string): string {
  return resolve(directory, env.LOCAL_DIR || '.local')
}

function credentialsPath(env: Environment, directory: string): string {
  return resolve(localDirectory(env, directory), 'credentials.json')
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
