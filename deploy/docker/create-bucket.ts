import { readFile } from 'node:fs/promises'
import {
  CreateBucketCommand,
  HeadBucketCommand,
  type LifecycleRule,
  PutBucketLifecycleConfigurationCommand,
} from '@aws-sdk/client-s3'
import { z } from 'zod'
import { openBucket } from '../../shared/object-store/s3-bucket.ts'
import { objectStoreSettings, processSettings, retentionSettings } from '../../shared/runtime/config.ts'
import { errorFields } from '../../shared/runtime/errors.ts'
import { openProcess } from '../../shared/runtime/process/open-process.ts'

/**
 * Creates the bucket if it does not exist, and gives it the rules of deploy/object-store, for the retention of this
 * installation.
 */
const { config, logger } = openProcess({
  name: 'bucket',
  schema: z.object({ ...processSettings, ...objectStoreSettings, ...retentionSettings }),
  env: process.env,
  usage: 'node deploy/docker/create-bucket.ts',
})
const { client, name: Bucket } = openBucket({
  endpoint: config.S3_ENDPOINT,
  region: config.S3_REGION,
  bucket: config.S3_BUCKET,
  accessKeyId: config.AWS_ACCESS_KEY_ID,
  secretAccessKey: config.AWS_SECRET_ACCESS_KEY,
  requestTimeoutMs: 10_000,
})

const RULES = new URL('../object-store/lifecycle.json', import.meta.url)
/** Prefixes of the objects whose rows expire after RETENTION_DAYS. */
const KEPT_AS_LONG_AS_ROWS = ['replays/', 'dead-letters/']

async function exists(): Promise<boolean> {
  try {
    await client.send(new HeadBucketCommand({ Bucket }))
    return true
  } catch (error) {
    if (error instanceof Error && error.name === 'NotFound') return false
    throw error
  }
}

async function readRules(): Promise<LifecycleRule[]> {
  const { Rules } = JSON.parse(await readFile(RULES, 'utf8')) as { Rules: LifecycleRule[] }
  return Rules.map(rule =>
    KEPT_AS_LONG_AS_ROWS.includes(rule.Filter?.Prefix ?? '')
      ? { ...rule, Expiration: { Days: config.RETENTION_DAYS + 1 } }
      : rule,
  )
}

if (!(await exists())) await client.send(new CreateBucketCommand({ Bucket }))
try {
  const LifecycleConfiguration = { Rules: await readRules() }
  await client.send(new PutBucketLifecycleConfigurationCommand({ Bucket, LifecycleConfiguration }))
  logger.info({ bucket: Bucket }, 'the bucket exists and has its rules')
} catch (error) {
  const advice =
    'the object store refused the rules of the bucket: delete old objects by other means (deploy/object-store)'
  logger.warn({ bucket: Bucket, ...errorFields(error) }, advice)
}
