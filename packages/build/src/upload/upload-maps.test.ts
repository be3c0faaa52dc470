import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HOUR_MS, KIB } from '../../../../schemas/units.ts'
import { createHttpClient } from './http-client.ts'
import type { PreparedMap } from './prepare-maps.ts'
import { signBatches, type UploadMapsDeps, uploadMaps } from './upload-maps.ts'

const PART_BYTES = 512 * KIB

describe('uploading maps', () => {
  let directory: string
  let server: Server
  let storeUrl: string
  /** Statuses of the store's next answers; 200 when the list is empty. */
  let statuses: number[]
  let puts: { path: string; body: string }[]
  let parts: { path: string; part: number; bytes: number }[]
  let signed: string[][]
  let notes: string[]
  let uploaded: string[]

  beforeEach(async () => {
    ;[statuses, puts, parts, signed, notes, uploaded] = [[], [], [], [], [], []]
    directory = await mkdtemp(join(tmpdir(), 'penstock-maps-'))
    server = createServer(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      puts.push({ path: request.url ?? '', body })
      response.writeHead(statuses.shift() ?? 200).end('<Error><Code>AccessDenied</Code><X>signature</X></Error>')
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    storeUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    server.closeAllConnections()
    server.close()
    await rm(directory, { recursive: true })
  })

  async function map(path: string, text = path): Promise<PreparedMap> {
    const absolutePath = join(directory, encodeURIComponent(path))
    await writeFile(absolutePath, text)
    return {
      path,
      absolutePath,
      sourceSize: text.length,
      edits: [],
      size: text.length,
      sha256: path,
      debugId: '',
      injected: [],
      differing: [],
    }
  }

  function upload(
    maps: readonly PreparedMap[],
    change: { known?: string[]; lifetimeMs?: number[]; byParts?: boolean; retryTimeoutMs?: number } = {},
  ) {
    const stopping = new AbortController()
    const http = createHttpClient(
      { fetch, now: Date.now, random: () => 0, delay: () => delay(1), abortSignal: stopping.signal, onRetry: () => {} },
      { retryTimeoutMs: change.retryTimeoutMs ?? 60_000 },
    )
    const deps: UploadMapsDeps = {
      http,
      now: Date.now,
      api: {
        async sign(_slug, files) {
          signed.push(files.map(({ path }) => path))
          const lifetimeMs = change.lifetimeMs?.shift() ?? HOUR_MS
          const expiresAt = new Date(Date.now() + lifetimeMs).toISOString()
          const uploadUrl = (path: string) => `${storeUrl}/${path}?signature=${signed.length}`
          return files.map(({ path }) =>
            change.known?.includes(path)
              ? { path, objectKey: path, alreadyUploaded: true }
              : { path, objectKey: path, uploadUrl: uploadUrl(path), expiresAt },
          )
        },
        putPart: async (_slug, path, part, bytes) => void parts.push({ path, part, bytes: bytes.length }),
      },
      onUploaded: ({ path }, how) => uploaded.push(`${path} ${how}`),
      onStoreUnreachable: (host, reason) => notes.push(`${host} ${reason}`),
      onFailure: () => stopping.abort(),
    }
    return uploadMaps(deps, maps, { slug: 'rel_a', concurrency: 4, byParts: change.byParts ?? false })
  }

  it('sends each map to its URL, except those that the service has', async () => {
    await upload([await map('a', 'body of a'), await map('b'), await map('c')], { known: ['b'] })
    expect(uploaded.sort()).toEqual(['a signed', 'b known', 'c signed'])
    expect(puts.find(({ path }) => path.startsWith('/a?'))?.body).toBe('body of a')
    expect(puts).toHaveLength(2)
  })

  it('signs an expired URL again, before sending or after a 403, and gives up on a store that keeps refusing', async () => {
    await upload([await map('a')], { lifetimeMs: [1_000] })
    expect(puts.map(({ path }) => path)).toEqual(['/a?signature=2'])
    statuses = [403]
    await upload([await map('a')])
    expect(puts.map(({ path }) => path).slice(1)).toEqual(['/a?signature=3', '/a?signature=4'])
    statuses = [403, 403, 403]
    const error = await upload([await map('a')]).catch(error => error)
    expect(error).toMatchObject({ result: 'pipeline_failed' })
    expect(error.message).toContain('uploading a: the object store answered 403 AccessDenied; --parts')
    expect(error.message).not.toContain('signature')
  })

  it('sends parts of 512 KiB through the service when the store is unreachable, and reports that once', async () => {
    server.close()
    const large = await map('large', 'x'.repeat(PART_BYTES + 1))
    await upload([large, await map('b'), await map('c'), await map('d'), await map('e'), await map('f')])
    expect(notes).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+ ECONNREFUSED$/)])
    expect(parts.filter(({ path }) => path === 'large')).toEqual([
      { path: 'large', part: 0, bytes: PART_BYTES },
      { path: 'large', part: 1, bytes: 1 },
    ])
    expect(parts).toHaveLength(7)
  })

  it('sends parts through the service even if there is no time to try the store again', async () => {
    server.close()
    await upload([await map('a')], { retryTimeoutMs: 0 })
    expect(notes).toHaveLength(1)
    expect(uploaded).toEqual(['a parts'])
  })

  it('keeps using a store that has answered once, because a later failure is an outage', async () => {
    statuses = [500, 200]
    await upload([await map('a')])
    expect(uploaded).toEqual(['a signed'])
    expect(notes).toEqual([])
  })

  it('sends only parts if requested', async () => {
    await upload([await map('a')], { byParts: true })
    expect([puts, parts, notes]).toEqual([[], [{ path: 'a', part: 0, bytes: 1 }], []])
  })

  it('fails at the first map that the store refuses', async () => {
    statuses = [400]
    await expect(upload([await map('a')])).rejects.toMatchObject({ result: 'pipeline_failed' })
    expect(uploaded).toEqual([])
  })
})

it('declares all maps in order, within the limits of a call', () => {
  const file = (path: string) => ({ path, size: 67_108_864, sha256: 'f'.repeat(64) }) as PreparedMap
  fc.assert(
    fc.property(fc.array(fc.string({ maxLength: 1_024 }), { maxLength: 2_000 }), paths => {
      const batches = [...signBatches(paths.map(file))]
      expect(batches.flat().map(({ path }) => path)).toEqual(paths)
      for (const batch of batches) {
        const files = batch.map(({ path, size, sha256 }) => ({ path, size, hash: sha256 }))
        expect(Buffer.byteLength(JSON.stringify({ files }))).toBeLessThan(256 * KIB)
        expect(batch.length).toBeGreaterThan(0)
      }
    }),
    { numRuns: 20 },
  )
  const long = Array.from({ length: 600 }, (_, i) => file(`${i}${'ü'.repeat(500)}`))
  expect([...signBatches(long)].length).toBeGreaterThan(2)
})
