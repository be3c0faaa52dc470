import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { HttpError } from '@oazapfts/runtime'
import * as penstock from './client.ts'

/**
 * Makes the tour of README.md with a client generated from /openapi.json. `test/e2e/openapi-client.test.ts` puts the
 * client beside this file, compiles both and runs them. Every unexpected result ends the run with an error.
 */
const baseUrl = variable('BASE_URL')
const page = { baseUrl, headers: { 'x-service-public-key': variable('PUBLIC_KEY') } }
const build = { baseUrl, headers: { authorization: `Bearer ${variable('SECRET_KEY')}` } }
const user = { baseUrl, headers: { authorization: `Bearer ${variable('SESSION_TOKEN')}` } }

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

/** Sends a span with an exception, then reads its finding and its trace. */
async function sendTrace() {
  await penstock.exportTelemetry({ signal: 'traces', otlpMessage: failedExport() }, page)
  const findingOf = async () => (await penstock.listFindings({ q: 'EmptyCartError' }, user)).findings[0]
  const listed = await eventually('a finding', findingOf)
  const trace = await eventually('its trace', () =>
    penstock.readFindingTrace({ findingId: listed.id, traceId, limit: 100 }, user),
  )
  const { finding } = await penstock.readFinding({ findingId: listed.id }, user)
  const { traces } = await penstock.listFindingTraces({ findingId: listed.id }, user)
  const isListed = traces.some(({ id }) => id === traceId)
  return {
    type: finding.type,
    spans: trace.spans.map(({ name, kind, statusCode }) => [name, kind, statusCode]),
    isListed,
  }
}

/** Identifies a session, uploads a chunk of its recording, and reads both back. */
async function recordSession() {
  const source = { type: 'custom', name: 'Our sign-in' } as const
  await penstock.identifySession({ identifySessionRequest: { sessionId, identifier: 'user-7', source } }, page)
  await penstock.recordHeartbeat({ heartbeatRequest: { sessionId } }, page)
  const metadata = { windowId: 'w1', segmentId: 0, firstTs: nowMs, lastTs: nowMs }
  const { objectKey } = await penstock.uploadReplayChunk(
    {
      sessionId,
      xReplayMetadata: Buffer.from(JSON.stringify(metadata)).toString('base64'),
      body: new Blob([JSON.stringify({ type: 4, data: { href: '/' }, timestamp: nowMs })]),
    },
    page,
  )
  const session = await eventually('the session with all of it', async () => {
    const answer = await penstock.readSession({ sessionId }, user)
    return answer.session.replay && answer.session.identity && answer.session.devices[0] ? answer.session : undefined
  })
  const { chunks } = await penstock.readReplay({ sessionId }, user)
  return { identifier: session.identity?.identifier, isStored: chunks.some(chunk => chunk.objectKey === objectKey) }
}

/** Registers a release, uploads its source map to the object store, and reads its manifest. */
async function uploadMap() {
  const map = JSON.stringify({ version: 3, sources: ['cart.ts'], names: [version], mappings: 'AAAA' })
  const file = { path: 'app.js.map', size: map.length, hash: createHash('sha256').update(map).digest('hex') }
  const { releaseSlug } = await penstock.registerRelease({ registerReleaseRequest: { version } }, build)
  const { files } = await penstock.signSourceMaps({ releaseSlug, signSourceMapsRequest: { files: [file] } }, build)
  for (const signed of files) {
    if (!('uploadUrl' in signed)) throw new Error('the source map of this run was already stored')
    const { status } = await fetch(signed.uploadUrl, { method: 'PUT', body: map })
    if (status !== 200) throw new Error(`the object store returned ${status}`)
  }
  const entry = { path: file.path, hash: file.hash, debugId: '', chunkUrl: '~/app.js' }
  await penstock.completeSourceMaps(
    { releaseSlug, completeSourceMapsRequest: { files: [entry], sourceFileCount: 1 } },
    build,
  )
  await penstock.reportBuild({ releaseSlug, buildReport: { total: 120, fileCount: 1, result: 'ok' } }, build)
  const { release } = await penstock.readRelease({ releaseSlug }, user)
  return { isVerified: release.manifest?.files[0]?.verified, sourceMapCount: release.sourceMapCount }
}

/** Creates a surface and a key that works at once, then deletes both. */
async function manageSurface() {
  const { surface } = await penstock.createSurface({ createSurfaceRequest: { name: 'Shop' } }, user)
  const { key } = await penstock.createSurfaceKey(
    { surfaceId: surface.id, createSurfaceKeyRequest: { kind: 'public' } },
    user,
  )
  const own = { baseUrl, headers: { 'x-service-public-key': key.secret } }
  const { ok } = await penstock.recordHeartbeat({ heartbeatRequest: { sessionId } }, own)
  const { keys } = await penstock.listSurfaceKeys({ surfaceId: surface.id }, user)
  await penstock.revokeSurfaceKey({ surfaceId: surface.id, keyId: key.id }, user)
  await penstock.deleteSurface({ surfaceId: surface.id }, user)
  const { surfaces } = await penstock.listSurfaces({}, user)
  return { ok, keyCount: keys.length, isGone: surfaces.every(({ id }) => id !== surface.id) }
}

async function refused() {
  try {
    await penstock.readFinding({ findingId: `fnd_${'a'.repeat(26)}` }, user)
    return undefined
  } catch (error) {
    if (!(error instanceof HttpError)) throw error
    return { status: error.status, code: error.data.code }
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

/** Reads until there is a value: acknowledged data becomes readable a moment later. */
async function eventually<T>(what: string, read: () => Promise<T | undefined>): Promise<T> {
  const deadlineAt = Date.now() + 15_000
  while (Date.now() < deadlineAt) {
    const value = await read().catch(error => {
      if (error instanceof HttpError && error.status === 404) return undefined
      throw error
    })
    if (value !== undefined) return value
    await delay(50)
  }
  throw new Error(`timed out waiting for ${what}`)
}

function variable(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is required`)
  return value
}
