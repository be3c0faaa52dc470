import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { generateSource } from 'oazapfts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startNodeProcess } from '../../deploy/local/processes/processes.ts'
import type { LocalCredentials } from '../../deploy/local/start.ts'
import { freePorts, type LocalStart, runLocalStart } from '../support/services/local-start.ts'

const TOUR = fileURLToPath(new URL('../support/clients/client-tour/tour.ts', import.meta.url))
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc')
const run = promisify(execFile)

/** The strict options of TypeScript. */
const COMPILER_OPTIONS = {
  strict: true,
  noUncheckedIndexedAccess: true,
  target: 'es2023',
  lib: ['es2023', 'dom'],
  module: 'esnext',
  moduleResolution: 'bundler',
  allowImportingTsExtensions: true,
  noEmit: true,
  types: ['node'],
  typeRoots: [join(ROOT, 'node_modules/@types')],
}

describe('a client generated from /openapi.json', () => {
  let dir: string
  let current: LocalStart
  let credentials: LocalCredentials

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'penstock-client-'))
    current = runLocalStart(join(dir, 'local'), await freePorts())
    credentials = await current.untilReady(60_000)
  })
  afterAll(async () => {
    current?.signal('SIGTERM')
    await current?.exited
    await rm(dir, { recursive: true, force: true })
  })

  it('comes from a document that every process serves with the same bytes', async () => {
    const edge = await startEdgeAlone(credentials)
    const base = await documentOf(credentials.baseUrl)
    expect(base.etag).toMatch(/^"[\w-]{43}"$/)
    expect(await documentOf(credentials.apiUrl)).toEqual(base)
    expect(await documentOf(edge.url)).toEqual(base)
    await edge.stop()
  })

  it('compiles in strict mode and performs the tour of the README', async () => {
    await writeFile(join(dir, 'openapi.json'), (await documentOf(credentials.baseUrl)).text)
    const source = await generateSource(join(dir, 'openapi.json'), { optimistic: true, argumentStyle: 'object' })
    await writeFile(join(dir, 'client.ts'), source)
    await symlink(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
    await copyFile(TOUR, join(dir, 'tour.ts'))
    await writeFile(join(dir, 'package.json'), '{"type":"module"}')
    await writeFile(
      join(dir, 'tsconfig.json'),
      JSON.stringify({ compilerOptions: COMPILER_OPTIONS, files: ['tour.ts'] }),
    )
    const faults = await run(process.execPath, [TSC, '-p', dir]).then(
      ({ stdout }) => stdout,
      ({ message, stdout }) => `${message}\n${stdout}`,
    )
    expect(faults).toBe('')

    const { stdout } = await run(process.execPath, [join(dir, 'tour.ts')], {
      cwd: ROOT,
      timeout: 60_000,
      env: {
        PATH: process.env.PATH,
        BASE_URL: credentials.baseUrl,
        PUBLIC_KEY: credentials.publicKey,
        SECRET_KEY: credentials.secretKey,
        SESSION_TOKEN: credentials.sessionToken,
      },
    })
    expect(JSON.parse(stdout)).toEqual({
      finding: { type: 'EmptyCartError', spans: [['GET /cart', 'SERVER', 'ERROR']], isListed: true },
      session: { identifier: 'user-7', isStored: true },
      release: { isVerified: true, sourceMapCount: 1 },
      surface: { ok: true, keyCount: 1, isGone: true },
      refusal: { status: 404, code: 'FINDING_NOT_FOUND' },
    })
  })
})

/** Starts an edge as in production, beside the process that serves everything. */
async function startEdgeAlone({ redisUrl, directoryRedisUrl }: LocalCredentials) {
  const { INGEST_PORT, INGEST_ADMIN_PORT } = await freePorts()
  const child = await startNodeProcess({
    script: 'ingest/main.ts',
    env: {
      PATH: process.env.PATH,
      REDIS_URL: redisUrl,
      DIRECTORY_REDIS_URL: directoryRedisUrl,
      INGEST_PORT,
      INGEST_ADMIN_PORT,
      LOG_LEVEL: 'warn',
    },
    adminUrl: `http://127.0.0.1:${INGEST_ADMIN_PORT}`,
    log: () => {},
    signal: new AbortController().signal,
  })
  return { url: `http://127.0.0.1:${INGEST_PORT}`, stop: () => child.stop() }
}

async function documentOf(baseUrl: string): Promise<{ etag: string | null; text: string }> {
  const response = await fetch(`${baseUrl}/openapi.json`)
  return { etag: response.headers.get('etag'), text: await response.text() }
}
