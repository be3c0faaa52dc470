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
  const text = await readIfThere(join(directory, env.LOCAL_DIR || '.local', 'credentials.json'))
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

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
