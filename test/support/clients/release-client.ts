import { createHash } from 'node:crypto'

/** Response of a build operation. */
interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** Source map and its path in the build. */
export interface NamedMap {
  readonly path: string
  readonly bytes: Buffer
}

/** Entry of a file in a completion. */
export interface FileEntry {
  path: string
  hash: string
  debugId: string
  chunkUrl: string
}

/** Largest part of a source map, in bytes. */
export const PART_BYTES = 512 * 1024

/** Number of files in a sign request, whose body may have 256 KiB. */
const SIGNED_AT_ONCE = 1_000

/** Returns a digest in hex. */
export const digestOf = (bytes: Uint8Array, algorithm = 'sha256') => createHash(algorithm).update(bytes).digest('hex')

/** Makes a source map of exactly this many bytes; `seed` distinguishes it from others. */
export function mapOf(seed: string, bytes = 200): Buffer {
  const head = `{"version":3,"sources":["${seed}.ts"],"names":[],"mappings":"`
  return Buffer.from(`${head}${'A'.repeat(Math.max(0, bytes - head.length - 2))}"}`)
}

/** Builds the entry of a map in a completion. */
export const entryOf = ({ path, bytes }: NamedMap, fields: Partial<FileEntry> = {}): FileEntry => ({
  path,
  hash: digestOf(bytes),
  debugId: '',
  chunkUrl: `https://shop.example/${path.replace(/\.map$/, '')}`,
  ...fields,
})

/** Creates a client that sends the requests of a build tool to the edge. */
export function createReleaseClient(baseUrl: string, secretKey: string) {
  async function send(method: string, path: string, type: string, body: Uint8Array | string): Promise<Answer> {
    const response = await fetch(baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${secretKey}`, 'content-type': type },
      body: typeof body === 'string' ? body : new Uint8Array(body),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const sendJson = (path: string, body: unknown) => send('POST', path, 'application/json', JSON.stringify(body))
  const mapsOf = (slug: string) => `/v3/releases/${slug}/source-maps`

  return {
    async register(version: string): Promise<string> {
      const { status, body } = await sendJson('/v3/releases', { version })
      if (status !== 200) throw new Error(`a release was not registered: ${status} ${JSON.stringify(body)}`)
      return body.releaseSlug as string
    },
    putPart: (slug: string, path: string, part: number, bytes: Uint8Array) =>
      send(
        'PUT',
        `${mapsOf(slug)}?${new URLSearchParams({ path, part: String(part) })}`,
        'application/octet-stream',
        bytes,
      ),
    putSingle: (slug: string, path: string, bytes: Uint8Array) =>
      send('PUT', `${mapsOf(slug)}/upload?${new URLSearchParams({ path })}`, 'application/json', bytes),
    /** Declares maps and returns the upload URL of each. */
    async sign(slug: string, maps: readonly NamedMap[], hashes: readonly string[] = []) {
      const files = maps.map(({ path, bytes }, i) => ({ path, size: bytes.length, hash: hashes[i] ?? digestOf(bytes) }))
      const { status, body } = await sendJson(`${mapsOf(slug)}/sign`, { files })
      if (status !== 200) throw new Error(`maps were not signed: ${status} ${JSON.stringify(body)}`)
      return body.files as { path: string; objectKey: string; uploadUrl?: string; alreadyUploaded?: true }[]
    },
    /** Declares maps, uploads the missing ones to the object store, and returns their number. */
    async upload(slug: string, maps: readonly NamedMap[], hashes: readonly string[] = []): Promise<number> {
      let sent = 0
      for (let at = 0; at < maps.length; at += SIGNED_AT_ONCE) {
        const end = at + SIGNED_AT_ONCE
        const rest = (await this.sign(slug, maps.slice(at, end), hashes.slice(at, end))).entries()
        const sendRest = async () => {
          for (const [i, { uploadUrl }] of rest) {
            if (uploadUrl === undefined) continue
            const body = new Uint8Array(maps[at + i]?.bytes as Buffer)
            const response = await fetch(uploadUrl, { method: 'PUT', body })
            await response.arrayBuffer()
            if (!response.ok) throw new Error(`the object store returned ${response.status}`)
            sent++
          }
        }
        await Promise.all(Array.from({ length: 16 }, sendRest))
      }
      return sent
    },
    complete: (slug: string, files: readonly FileEntry[], sourceFileCount = files.length) =>
      sendJson(`${mapsOf(slug)}/complete`, { files, sourceFileCount }),
  }
}

/** Client of the build operations. */
export type ReleaseClient = ReturnType<typeof createReleaseClient>
