import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
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

const STORES = ['REDIS_URL', 'CONTROL_REDIS_URL', 'CLICKHOUSE_URL', 'S3_ENDPOINT'] as const

/**
 * The environment, with the stores of `npm start` where it names none and they have been started in this directory
 * before: the command then needs no settings beside it.
 */
export async function withLocalStores(
  env: Readonly<Record<string, string | undefined>>,
  directory: string,
): Promise<Readonly<Record<string, string | undefined>>> {
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
  env: Readonly<Record<string, string | undefined>>,
  directory: string,
): Promise<z.infer<typeof serviceSchema> | undefined> {
  const text = await readIfThere(credentialsPath(env, directory))
  return text === undefined ? undefined : serviceSchema.parse(JSON.parse(text))
}

function credentialsPath(env: Readonly<Record<string, string | undefined>>, directory: string): string {
  return join(directory, env.LOCAL_DIR || '.local', 'credentials.json')
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
