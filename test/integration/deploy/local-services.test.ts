import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { createClient } from '@clickhouse/client'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Services, startServices } from '../../support/services/services.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

describe('the servers that npm start runs', () => {
  let services: Services
  beforeAll(async () => {
    services = await startServices()
  })
  afterAll(() => services?.stop())

  it('Redis keeps every acknowledged write through kill -9', async () => {
    const redis = new Redis(services.redisUrl)
    expect(await redis.config('GET', 'appendfsync')).toEqual(['appendfsync', 'always'])
    expect(await redis.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction'])
    await redis.set('kept', 'yes')
    await services.redis.kill9()
    await services.redis.restart()
    expect(await redis.get('kept')).toBe('yes')
    await redis.quit()
  })

  it('ClickHouse keeps databases, tables and rows through kill -9', async () => {
    const client = createClient({ url: services.clickhouseUrl })
    await client.command({ query: 'CREATE DATABASE IF NOT EXISTS penstock ENGINE = Atomic' })
    await client.command({ query: 'CREATE TABLE penstock.kept (n UInt64) ENGINE = MergeTree ORDER BY n' })
    await client.command({ query: 'INSERT INTO penstock.kept SELECT number FROM numbers(10000)' })
    await services.clickhouse.kill9()
    await services.clickhouse.restart()
    const result = await client.query({
      query: 'SELECT toString(sum(n)) AS sum FROM penstock.kept',
      format: 'JSONEachRow',
    })
    expect(await result.json()).toEqual([{ sum: '49995000' }])
    await client.command({ query: 'DROP TABLE penstock.kept' })
    await client.close()
  })

  it('S3 keeps objects through kill -9 and refuses a wrong signature', async () => {
    const bucket = services.s3.bucket
    const s3 = connect(services.s3.secretAccessKey)
    await s3.send(new PutObjectCommand({ Bucket: bucket, Key: 'a/kept', Body: Buffer.from('yes') }))
    await services.s3Server.kill9()
    await services.s3Server.restart()
    const { Body } = await s3.send(new GetObjectCommand({ Bucket: bucket, Key: 'a/kept' }))
    expect(await Body?.transformToString()).toBe('yes')
    await expect(connect('wrong').send(new GetObjectCommand({ Bucket: bucket, Key: 'a/kept' }))).rejects.toMatchObject({
      $metadata: { httpStatusCode: 403 },
    })
  })

  it('every integration test has shared servers as well', async () => {
    expect(sharedServices().redisUrl).toMatch(/^redis:/)
    expect(await (await fetch(new URL(sharedServices().clickhouseUrl).origin)).text()).toBe('Ok.\n')
  })

  function connect(secretAccessKey: string): S3Client {
    return new S3Client({
      endpoint: services.s3.endpoint,
      region: services.s3.region,
      forcePathStyle: true,
      credentials: { accessKeyId: services.s3.accessKeyId, secretAccessKey },
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      maxAttempts: 1,
    })
  }
})
