import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createReleaseClient, entryOf } from '../clients/release-client.ts'
import { buildApp } from '../pages/built-app.ts'
import { writeReporters } from '../pages/failing-page.ts'

const run = promisify(execFile)

interface Access {
  readonly ingestUrl: string
  readonly publicKey: string
  readonly secretKey: string
}

/** An app that is built, released with its source map, and fails. */
export interface FailingReleases {
  /** Builds a version, releases it, and has it fail once. */
  failIn(version: string): Promise<void>
  /** Registers a version without maps. */
  register(version: string): Promise<void>
  end(): Promise<void>
}

/** Prepares releases of the app in a directory of their own. */
export async function prepareReleases({ ingestUrl, publicKey, secretKey }: Access): Promise<FailingReleases> {
  const root = await mkdtemp(join(tmpdir(), 'penstock-releases-'))
  const client = createReleaseClient(ingestUrl, secretKey)
  await writeReporters(root)
  return {
    async failIn(version) {
      const directory = join(root, version)
      await mkdir(directory)
      const app = await buildApp('esbuild', directory, version)
      const slug = await client.register(version)
      const map = { path: `${app.script}.map`, bytes: app.map }
      await client.upload(slug, [map])
      const { status, body } = await client.complete(slug, [entryOf(map, { chunkUrl: `~/${app.script}` })], 3)
      if (status >= 300) throw new Error(`the release was not completed: ${status} ${JSON.stringify(body)}`)
      const settings = { url: `${ingestUrl}/drain/v1/traces`, publicKey, service: 'shop', version }
      const script = join(app.directory, app.script)
      await run(process.execPath, [join(root, 'runner.mjs'), script, JSON.stringify(settings)], { timeout: 30_000 })
    },
    async register(version) {
      await client.register(version)
    },
    end: () => rm(root, { recursive: true, force: true }),
  }
}
