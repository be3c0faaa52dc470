import { randomBytes } from 'node:crypto'
import { afterAll, expect } from 'vitest'
import type { ManifestPointer } from '../../../../schemas/records/directory.ts'
import { type Manifest, manifestSchema } from '../../../../schemas/records/manifest.ts'
import { MIB } from '../../../../schemas/units.ts'
import { sourceMapKey } from '../../../../shared/object-store/object-keys.ts'
import { uploadKeys } from '../../../../shared/queue/upload-keys.ts'
import { mapOf, type NamedMap } from '../../../support/clients/release-client.ts'
import { startReleaseStack } from '../../../support/services/release-stack.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'

const services = sharedServices()

export const stack = await startReleaseStack(services, `${services.redisUrl}/9`)
afterAll(() => stack.stop())
export const { redis, objects, releases, client, workspaceId, surfaceId } = stack
let releaseCount = 0

export const register = () => client.register(`1.0.${++releaseCount}`)
export const keysOf = (slug: string) => uploadKeys({ workspaceId, surfaceId, slug })
export const named = (path: string, bytes = 200): NamedMap => ({
  path,
  bytes: mapOf(`${path}-${randomBytes(4).toString('hex')}`, bytes),
})
export const contentOf = async (sha256: string) =>
  (await objects.get(sourceMapKey(workspaceId, sha256), 64 * MIB))?.body

export const listed = (prefix: string) => stack.listed(prefix)

export async function held(slug: string): Promise<{ pointer: ManifestPointer; manifest: Manifest } | undefined> {
  const pointer = await releases.manifest(workspaceId, slug)
  const object = pointer && (await objects.get(pointer.objectKey, 64 * MIB))
  return object && pointer && { pointer, manifest: manifestSchema.parse(JSON.parse(object.body.toString())) }
}

export async function putParts(
  slug: string,
  { path, bytes }: NamedMap,
  order?: number[],
  partBytes = 50,
): Promise<void> {
  const parts = order ?? Array.from({ length: Math.ceil(bytes.length / partBytes) }, (_, part) => part)
  for (const part of parts) {
    const piece = bytes.subarray(part * partBytes, (part + 1) * partBytes)
    expect(await client.putPart(slug, path, part, piece)).toMatchObject({ status: 200 })
  }
}

export const invalid = (message: RegExp) => ({
  status: 400,
  body: { code: 'REQUEST_INVALID', message: expect.stringMatching(message) },
})
