import { createHash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { MIB } from '../../../../schemas/units.ts'
import { sourceMapKey } from '../../../../shared/object-store/object-keys.ts'
import { uploadKeys } from '../../../../shared/queue/upload-keys.ts'
import { digestOf, entryOf, type FileEntry, mapOf, PART_BYTES } from '../../../support/clients/release-client.ts'
import { type ReleaseStack, startReleaseStack } from '../../../support/services/release-stack.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { until } from '../../../support/until.ts'

const services = sharedServices()
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

let stack: ReleaseStack
beforeAll(async () => {
  stack = await startReleaseStack(services, `${services.redisUrl}/9`)
})
afterAll(() => stack?.stop())

it('1,000 presigned maps are completed before the client gives up', async () => {
  const { client, releases, workspaceId, surfaceId, listed } = stack
  const slug = await client.register('1,000 maps')
  const maps = Array.from({ length: 1_000 }, (_, i) => {
    const path = `static/js/chunk-${i}.js.map`
    return { path, bytes: mapOf(path, 2_000) }
  })
  expect(await client.upload(slug, maps)).toBe(1_000)
  // Edge and workers run in this process, so its CPU time is what the completion costs on any machine.
  const before = process.cpuUsage()
  const answer = await completed(
    slug,
    maps.map(map => entryOf(map)),
  )
  const { user, system } = process.cpuUsage(before)
  expect(answer).toEqual({ status: 200, body: { ok: true, fileCount: 1_000 } })
  expect((user + system) / 1_000).toBeLessThan(18_000)
  expect(await releases.manifest(workspaceId, slug)).toMatchObject({ sourceMapCount: 1_000 })
  expect(await listed(`uploads/${workspaceId}/${surfaceId}/${slug}/`)).toEqual([])
})

it('64 MiB in parts become a map without being in memory at once', async () => {
  const { client, redis, objects, workspaceId, surfaceId } = stack
  const slug = await client.register('64 MiB')
  const path = 'large.js.map'
  const hash = createHash('sha256')
  for (let part = 0; part < 128; part++) {
    const piece = Buffer.alloc(PART_BYTES, `part ${part} `)
    hash.update(piece)
    expect(await client.putPart(slug, path, part, piece)).toMatchObject({ status: 200 })
  }
  const parts = uploadKeys({ workspaceId, surfaceId, slug }).parts(path)
  await until('all parts are stored', async () => (await redis.hlen(parts)) === 2 * 128 + 2)
  const entry = { ...entryOf({ path, bytes: Buffer.alloc(0) }), hash: hash.digest('hex') }

  const heldBefore = heldAfterCollection()
  let most = heldBefore
  const timer = setInterval(() => {
    if (held() > most) most = Math.max(most, heldAfterCollection())
  }, 5)
  const answer = await completed(slug, [entry])
  expect(answer).toEqual({ status: 200, body: { ok: true, fileCount: 1 } })
  clearInterval(timer)
  const grownMib = (most - heldBefore) / MIB
  // Two passes over 64 MiB in pieces of 64 KiB.
  expect(grownMib).toBeLessThan(40)
  const stored = await objects.get(sourceMapKey(workspaceId, entry.hash), 64 * MIB)
  expect(digestOf(stored?.body as Buffer)).toBe(entry.hash)
})

/** Returns the memory of this process, which runs edge and workers: its heap and its buffers outside of the heap. */
function held(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Returns the same memory without garbage, so that it does not matter how busy the collector is. */
function heldAfterCollection(): number {
  collectGarbage()
  return held()
}

/** Completes a release; on a busy machine the edge may stop waiting, and the same request finds the result later. */
function completed(slug: string, entries: readonly FileEntry[]) {
  return until(
    'the release is completed',
    async () => {
      const { status, body } = await stack.client.complete(slug, entries)
      return status !== 503 && { status, body }
    },
    { deadlineMs: 50_000 },
  )
}
