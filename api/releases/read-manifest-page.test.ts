import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { TransientError } from '../../shared/runtime/errors.ts'
import { readManifestPage } from './read-manifest-page.ts'

const POINTER = {
  version: 1,
  sequence: 1,
  objectKey: 'releases/ws_1/rel_a/manifest-1.json',
  sourceMapCount: 1,
  sourceFileCount: 1,
  completedAt: '2026-01-01T00:00:00.000Z',
} as const

it('ends at the deadline, together with the download, when the store sends an endless manifest', async () => {
  const body = new Readable({
    read() {
      setImmediate(() => this.push(' '))
    },
  })
  const head = { size: 1e9, contentType: 'application/json', metadata: {}, etag: '' }
  const objects = { getStream: async () => ({ ...head, body }) }
  const deadline = new AbortController()
  const page = readManifestPage(objects, POINTER, { limit: 10, after: undefined }, deadline.signal)
  setTimeout(() => deadline.abort(), 20)
  await expect(page).rejects.toThrow(TransientError)
  expect(body.destroyed).toBe(true)
})
