import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { z } from 'zod'

const credentialsSchema = z.object({
  redisUrl: z.string(),
  clickhouseUrl: z.string(),
  s3: z.object({
    endpoint: z.string(),
    bucket: z.string(),
    accessKeyId: z.string(),
    secretAccessKey: z.string(),
  }),
})

/** Of the secrets of an installation, what signs its session tokens: PKCS #8, PEM. */
const secretsSchema = z.object({ authPrivateKey: z.string() })

type Environment = Readonly<Record<string, string | undefined>>

const STORES = ['REDIS_URL', 'CONTROL_REDIS_URL', 'CLICKHOUSE_URL', 'S3_ENDPOINT'] as const

/**
 * The environment, with the stores of `npm start` where it names none and they have been started in this directory
 * before: the command then needs no settings beside it.
 */
export async function withLocalStores(env: Environment, directory: string): Promise<Environment> {
  if (STORES.some(name => env[name])) return env
  const text = await readIfThere(credentialsPath(env, directory))
  if (text === undefined) return env
  const { redisUrl, clickhouseUrl, s3 } = credentialsSchema.parse(JSON.parse(text))
  return {
    ...env,
    REDIS_URL: redisUrl,
    CLICKHOUSE_URL: clickhouseUrl,
    S3_ENDPOINT: s3.endpoint,
    S3_BUCKET: s3.bucket,
    AWS_ACCESS_KEY_ID: s3.accessKeyId,
    AWS_SECRET_ACCESS_KEY: s3.secretAccessKey,
  }
}

const serviceSchema = z.object({ baseUrl: z.url({ protocol: /^https?$/ }), secretKey: z.string() })

/** The address and the secret key of what `npm start` runs in this directory; undefined when it never has. */
export async function findLocalService(
  env: Environment,
  directory: string,
): Promise<z.infer<typeof serviceSchema> | undefined> {
  const text = await readIfThere(credentialsPath(env, directory))
  return text === undefined ? undefined : serviceSchema.parse(JSON.parse(text))
}

function credentialsPath(env: Environment, directory: string): string {
  return resolve(localDirectory(env, directory), 'credentials.json')
}

/** What a local installation signs session tokens with; undefined where none was made. */
export async function readSigningKey(env: Environment, directory: string): Promise<string | undefined> {
  const path = resolve(localDirectory(env, directory), 'secrets.json')
  const text = await readIfThere(path)
  if (text === undefined) return undefined
  const secrets = secretsSchema.safeParse(parseJson(text))
  if (!secrets.success) throw new Error(`${path} is not what "npm start" writes`)
  return secrets.data.authPrivateKey
}

/** Where `npm start` keeps what it makes. */
export function localDirectory(env: Environment, directory: string): string {
  return resolve(directory, env.LOCAL_DIR || '.local')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
