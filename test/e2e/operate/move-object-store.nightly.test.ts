import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../../deploy/local/ports.ts'
import { startS3 } from '../../../deploy/local/stores/s3.ts'
import type { LocalService } from '../../../deploy/local/stores/service.ts'
import { createObjectStore } from '../../../shared/object-store/object-store.ts'
import { findCommand } from '../../support/debian-package.ts'
import { type OperatedInstallation, startOperatedInstallation } from '../../support/operate/installation.ts'
import { pathWith } from '../../support/operate/page.ts'
import { type RcloneProxy, startRcloneProxy } from '../../support/operate/rclone-proxy.ts'
import { type S3Access, s3Settings } from '../../support/services/services.ts'

const rclone = findCommand('rclone', 'usr/bin/rclone')

let installation: OperatedInstallation
let next: LocalService
let access: S3Access
let proxy: RcloneProxy

beforeAll(async () => {
  installation = await startOperatedInstallation()
  const { services } = installation
  const bucket = { bucket: 'penstock-2', accessKeyId: 'next-access', secretAccessKey: 'next-secret' }
  const dir = join(services.dir, 's3-2')
  next = await startS3({ dir, port: await freePort(), log: () => {}, ...bucket })
  access = { ...bucket, endpoint: next.url, region: 'us-east-1' }
  proxy = await startRcloneProxy(services.s3)
})

afterAll(async () => {
  await installation?.stop()
  await proxy?.close()
  await next?.stop()
})

/** Returns the variables with which rclone reaches a bucket. */
function remote(name: 'OLD' | 'NEW', { endpoint, region, bucket, accessKeyId, secretAccessKey }: S3Access) {
  return {
    [name]: `${name.toLowerCase()}:${bucket}`,
    [`RCLONE_CONFIG_${name}_TYPE`]: 's3',
    [`RCLONE_CONFIG_${name}_PROVIDER`]: 'Other',
    [`RCLONE_CONFIG_${name}_ENDPOINT`]: endpoint,
    [`RCLONE_CONFIG_${name}_REGION`]: region,
    [`RCLONE_CONFIG_${name}_NO_CHECK_BUCKET`]: 'true',
    [`RCLONE_CONFIG_${name}_ACCESS_KEY_ID`]: accessKeyId,
    [`RCLONE_CONFIG_${name}_SECRET_ACCESS_KEY`]: secretAccessKey,
  }
}

/** Returns what the store has of an object beside its bytes. */
async function propertiesOf(bucket: S3Access, key: string) {
  const objects = createObjectStore({ ...bucket, requestTimeoutMs: 10_000 })
  try {
    const head = await objects.head(key)
    if (head === undefined) throw new Error(`${key} is missing`)
    return { contentType: head.contentType, metadata: head.metadata }
  } finally {
    objects.close()
  }
}

it('the object store moves to another bucket under load, and nothing that was acknowledged is lost', async () => {
  if ('fault' in rclone) return console.log(`SKIPPED, no bucket is moved: ${rclone.fault}`)
  const { services, settings, clients } = installation
  const page = await installation.openPage('move-object-store.md', {
    PATH: pathWith(rclone.command),
    ...remote('OLD', { ...services.s3, endpoint: proxy.endpoint }),
    ...remote('NEW', access),
  })
  await clients.untilServed(30_000)
  await page.run('1. Copy what there is')
  await clients.untilServed(30_000)
  await installation.stopWorkers()
  Object.assign(settings, s3Settings(access))
  await installation.stopEdge()
  await installation.startEdge()
  await page.run('4. Copy what has changed')
  const chunk =
    clients.ledger.entries.find(({ object, outcome }) => object && outcome === 'acknowledged')?.object?.key ?? ''
  expect(await propertiesOf(access, chunk)).toMatchObject(await propertiesOf(services.s3, chunk))
  await services.s3Server.stop()
  await installation.startWorkers()
  await clients.untilServed(30_000)
  await installation.expectNothingLost(page)
  expect(Object.keys(clients.ledger.answers())).toContain('200')
}, 180_000)
