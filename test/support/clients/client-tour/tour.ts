import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, Penstock } from './client/index.ts'

/**
 * The tour of README.md with a client that was generated from /openapi.json: `test/e2e/openapi-client.test.ts` puts it
 * beside this file, compiles both and runs them. Whatever does not go as it should ends it with an error.
 */
const BASE = variable('BASE_URL')
const page = new Penstock({ BASE, HEADERS: { 'x-service-public-key': variable('PUBLIC_KEY') } })
const build = new Penstock({ BASE, TOKEN: variable('SECRET_KEY') })
const user = new Penstock({ BASE, TOKEN: variable('SESSION_TOKEN') })

const traceId = randomBytes(16).toString('hex')
const sessionId = `session-${traceId.slice(0, 8)}`
const version = `1.4.2-${traceId.slice(0, 8)}`
const nowMs = Date.now()

const seen = {
  finding: await sendTrace(),
  session: await recordSession(),
  release: await uploadMap(),
  surface: await manageSurface(),
  refusal: await refused(),
}
console.log(JSON.stringify(seen))

/** Sends a span with an exception, and finds it as a finding and in its trace. */
async function sendTrace() {
  await page.telemetry.exportTelemetry({ signal: 'traces', requestBody: failedExport() })
  const findingOf = async () => (await user.findings.listFindings({ q: 'EmptyCartError' })).findings[0]
  const listed = await eventually('a finding', findingOf)
  const trace = await eventually('its trace', () =>
    user.findings.readFindingTrace({ findingId: listed.id, traceId, limit: 100 }),
  )
  const { finding } = await user.findings.readFinding({ findingId: listed.id })
  const { traces } = await user.findings.listFindingTraces({ findingId: listed.id })
  const isListed = traces.some(({ id }) => id === traceId)
  return {
    type: finding.type,
    spans: trace.spans.map(({ name, kind, statusCode }) => [name, kind, statusCode]),
    isListed,
  }
}

/** Identifies a session, uploads what its page has recorded, and reads it back. */
async function recordSession() {
  const source = { type: 'custom', name: 'Our sign-in' } as const
  await page.sessions.identifySession({ requestBody: { sessionId, identifier: 'user-7', source } })
  await page.sessions.recordHeartbeat({ requestBody: { sessionId } })
  const metadata = { windowId: 'w1', segmentId: 0, firstTs: nowMs, lastTs: nowMs }
  const { objectKey } = await page.sessions.uploadReplayChunk({
    sessionId,
    xReplayMetadata: Buffer.from(JSON.stringify(metadata)).toString('base64'),
    requestBody: new Blob([JSON.stringify({ type: 4, data: { href: '/' }, timestamp: nowMs })]),
  })
  const session = await eventually('the session with all of it', async () => {
    const answer = await user.sessions.readSession({ sessionId })
    return answer.session.replay && answer.session.identity && answer.session.devices[0] ? answer.session : undefined
  })
  const { chunks } = await user.sessions.readReplay({ sessionId })
  return { identifier: session.identity?.identifier, isStored: chunks.some(chunk => chunk.objectKey === objectKey) }
}

/** Registers a release, uploads its source map to the object store, and reads its manifest. */
async function uploadMap() {
  const map = JSON.stringify({ version: 3, sources: ['cart.ts'], names: [version], mappings: 'AAAA' })
  const file = { path: 'app.js.map', size: map.length, hash: createHash('sha256').update(map).digest('hex') }
  const { releaseSlug } = await build.releases.registerRelease({ requestBody: { version } })
  const { files } = await build.releases.signSourceMaps({ releaseSlug, requestBody: { files: [file] } })
  for (const signed of files) {
    if (!('uploadUrl' in signed)) throw new Error('a map of this run alone was there before')
    const { status } = await fetch(signed.uploadUrl, { method: 'PUT', body: map })
    if (status !== 200) throw new Error(`the object store answered ${status}`)
  }
  const entry = { path: file.path, hash: file.hash, debugId: '', chunkUrl: '~/app.js' }
  await build.releases.completeSourceMaps({ releaseSlug, requestBody: { files: [entry], sourceFileCount: 1 } })
  await build.releases.reportBuild({ releaseSlug, requestBody: { total: 120, fileCount: 1, result: 'ok' } })
  const { release } = await user.releases.readRelease({ releaseSlug })
  return { isVerified: release.manifest?.files[0]?.verified, sourceMapCount: release.sourceMapCount }
}

/** Makes a surface and a key that works at once, then takes both away. */
async function manageSurface() {
  const { surface } = await user.workspaces.createSurface({ requestBody: { name: 'Shop' } })
  const { key } = await user.workspaces.createSurfaceKey({ surfaceId: surface.id, requestBody: { kind: 'public' } })
  const own = new Penstock({ BASE, HEADERS: { 'x-service-public-key': key.secret } })
  const { ok } = await own.sessions.recordHeartbeat({ requestBody: { sessionId } })
  const { keys } = await user.workspaces.listSurfaceKeys({ surfaceId: surface.id })
  await user.workspaces.revokeSurfaceKey({ surfaceId: surface.id, keyId: key.id })
  await user.workspaces.deleteSurface({ surfaceId: surface.id })
  const { surfaces } = await user.workspaces.listSurfaces({})
  return { ok, keyCount: keys.length, isGone: surfaces.every(({ id }) => id !== surface.id) }
}

async function refused() {
  try {
    await user.findings.readFinding({ findingId: `fnd_${'a'.repeat(26)}` })
    return undefined
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { status: error.status, code: error.body.code }
  }
}

function failedExport() {
  const text = (key: string, stringValue: string) => ({ key, value: { stringValue } })
  const event = {
    name: 'exception',
    timeUnixNano: `${nowMs}000000`,
    attributes: [text('exception.type', 'EmptyCartError'), text('exception.message', 'the cart is empty')],
  }
  const span = {
    traceId,
    spanId: randomBytes(8).toString('hex'),
    name: 'GET /cart',
    kind: 2,
    startTimeUnixNano: `${nowMs}000000`,
    endTimeUnixNano: `${nowMs + 42}000000`,
    events: [event],
    status: { code: 2, message: 'the cart is empty' },
  }
  const resource = { attributes: [text('service.name', 'shop'), text('service.version', version)] }
  return { resourceSpans: [{ resource, scopeSpans: [{ spans: [span] }] }] }
}

/** What was acknowledged is read a moment later. */
async function eventually<T>(what: string, read: () => Promise<T | undefined>): Promise<T> {
  const deadlineAt = Date.now() + 15_000
  while (Date.now() < deadlineAt) {
    const value = await read().catch(error => {
      if (error instanceof ApiError && error.status === 404) return undefined
      throw error
    })
    if (value !== undefined) return value
    await delay(50)
  }
  throw new Error(`waited in vain for ${what}`)
}

function variable(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is needed`)
  return value
}
