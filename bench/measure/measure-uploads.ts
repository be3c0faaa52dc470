import { randomBytes } from 'node:crypto'
import { KIB, MIB } from '../../schemas/units.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { type BuildClient, type BuildFile, buildFile } from '../load/build-client.ts'
import { sourceMapPayload } from '../payloads/source-map-payload.ts'
import type { BenchS3 } from '../services/start-s3.ts'
import { meterProcesses, type ProcessUse } from './process-meter.ts'

/** Sizes of the maps of a build with many routes: most have a few sources, some a whole library. */
const MEDIAN_BYTES = 8 * KIB
const SIGMA = 1
const LARGE = [3 * MIB, MIB, MIB]

/** Creates the files of one build. The bytes differ in every build, and the sizes have the same distribution. */
function makeBuild(count: number): BuildFile[] {
  const build = randomBytes(4).toString('hex')
  return Array.from({ length: count }, (_, i) => {
    const name = `assets/chunk-${build}-${i}.js`
    const bytes = LARGE[i] ?? Math.round(MEDIAN_BYTES * Math.exp(SIGMA * normal()))
    return buildFile(`${name}.map`, sourceMapPayload(name, bytes).json)
  })
}

/** Returns a normally distributed number (Box and Muller). */
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random())

/** Result of one upload of a build. */
export interface MeasuredUpload {
  readonly files: number
  readonly bytes: number
  readonly seconds: number
  /** Time until the last byte was acknowledged. The completion takes the rest of `seconds`. */
  readonly uploadSeconds: number
  readonly refused: number
  readonly use: Readonly<Record<string, ProcessUse>>
}

/** Collaborators of the upload measurements. */
export interface UploadDeps {
  readonly client: BuildClient
  readonly s3: BenchS3
  readonly workspaceId: string
  readonly pids: Readonly<Record<string, number>>
}

/**
 * Measures from the first request of a build to the response of its completion, when the manifest names every stored
 * map.
 */
export async function measureBuild(deps: UploadDeps, way: 'signed' | 'parts', count: number): Promise<MeasuredUpload> {
  const { client, s3, workspaceId, pids } = deps
  const files = makeBuild(count)
  const slug = await client.register(files[0]?.path ?? '')
  const prefix = `source-maps/${workspaceId}/`
  const before = await stored(s3.objects, prefix)
  const upload = way === 'signed' ? client.uploadSigned : client.uploadParts
  const measured = await timed(pids, files, async () => {
    const refused = await upload(slug, files)
    const uploadedAt = performance.now()
    return { refused: refused + (await client.complete(slug, files)), uploadedAt }
  })
  const after = await stored(s3.objects, prefix)
  if (after.count - before.count !== count || after.bytes - before.bytes !== measured.bytes) {
    throw new Error(`${after.count - before.count} maps of ${after.bytes - before.bytes} bytes are stored`)
  }
  return measured
}

/** Measures the upload of similar files to the same store by the same client, with addresses signed beforehand. */
export async function measureDirect({ client, s3 }: UploadDeps, count: number): Promise<MeasuredUpload> {
  const files = makeBuild(count)
  const prefix = `direct/${randomBytes(4).toString('hex')}/`
  const signed = await Promise.all(
    files.map(({ path, body }) =>
      s3.objects.presignPut(prefix + path, { contentLength: body.length, expiresInS: 3_600 }),
    ),
  )
  const urls = signed.map(({ url }) => url)
  const measured = await timed(s3.pids, files, async () => {
    const refused = await client.putAll(urls, files)
    return { refused, uploadedAt: performance.now() }
  })
  const after = await stored(s3.objects, prefix)
  if (after.count !== count || after.bytes !== measured.bytes) throw new Error(`${after.count} objects are stored`)
  return measured
}

async function timed(
  pids: Readonly<Record<string, number>>,
  files: readonly BuildFile[],
  work: () => Promise<{ refused: number; uploadedAt: number }>,
): Promise<MeasuredUpload> {
  const meter = meterProcesses(pids)
  meter.begin()
  const startedAt = performance.now()
  const { refused, uploadedAt } = await work()
  const seconds = (performance.now() - startedAt) / 1_000
  const bytes = files.reduce((sum, { body }) => sum + body.length, 0)
  const uploadSeconds = (uploadedAt - startedAt) / 1_000
  return { files: files.length, bytes, seconds, uploadSeconds, refused, use: meter.end() }
}

async function stored(objects: Pick<ObjectStore, 'list'>, prefix: string): Promise<{ count: number; bytes: number }> {
  let [count, bytes] = [0, 0]
  for await (const page of objects.list(prefix)) {
    count += page.length
    bytes += page.reduce((sum, { size }) => sum + size, 0)
  }
  return { count, bytes }
}
