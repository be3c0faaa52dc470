import { gzipSync } from 'node:zlib'
import { z } from 'zod'
import { SECOND_MS } from '../../schemas/units.ts'
import { type HistorySize, makeHistory, type Visitor } from './history.ts'
import { DemoFailure, type Installation } from './installation.ts'
import { exportsOf, type Signal } from './otlp.ts'
import { failCheckout } from './page-failures.ts'
import { createRandom } from './random.ts'
import { loadRecorded, type Recorded, recordedVisit } from './recorded.ts'
import { Telemetry } from './telemetry.ts'
import type { Truth } from './truth.ts'
import { browse } from './visits.ts'

/** Pages of the console that show the failing checkout. */
export interface DemoLinks {
  readonly finding: string
  readonly trace: string
  readonly session: string
}

/** Size of the shop, and when it is: the same seed makes the same shop, at another time with other ids. */
interface DemoOptions extends HistorySize {
  readonly seed: string
  readonly nowMs: number
}

/** Shows how far the demo is. */
export interface DemoProgress {
  begin(step: string, total: number): void
  advance(): void
  end(): void
  /** The failing checkout is stored and can be looked at. */
  linked(links: DemoLinks): void
}

/** The last event of the recording happened so long ago. */
const AGO_MS = 5 * SECOND_MS
/** The session is shown from this long before the failure. */
const BEFORE_MS = 4 * SECOND_MS
/** Records of a request, as batching exporters send them. */
const BATCH: Readonly<Record<Signal, number>> = { traces: 512, logs: 512, metrics: 4 }
const SENDERS = 4

const findingsSchema = z.object({ findings: z.array(z.object({ id: z.string(), type: z.string() })) })
const framesSchema = z.object({
  finding: z.object({ frames: z.array(z.object({ sourceLine: z.string().optional() })) }),
})

/**
 * Sends the shop: source maps, then a checkout that fails in a recorded session, then hours of history. Returns the links to the
 * checkout, and the truth.
 */
export async function runDemo(
  installation: Installation,
  options: DemoOptions,
  progress: DemoProgress,
): Promise<{ links: DemoLinks; truth: Truth }> {
  const recorded = loadRecorded()
  const telemetry = new Telemetry(createRandom(options.seed, String(options.nowMs)))
  const links = await sendCheckout(installation, telemetry, recorded, options, progress)
  progress.linked(links)
  const visitors = makeHistory(telemetry, recorded, options.nowMs, options)
  const requests = requestsOf(installation, telemetry).concat(
    visitors.flatMap(visitor => sessionRequests(installation, telemetry, visitor)),
  )
  await sendAll('history', requests, progress)
  await installation.untilStored()
  return { links, truth: telemetry.truth }
}

type Send = () => Promise<void>

/** Sends what the finding, its trace and its session need, and waits until they can be opened. */
async function sendCheckout(
  installation: Installation,
  telemetry: Telemetry,
  recorded: Recorded,
  { nowMs }: DemoOptions,
  progress: DemoProgress,
): Promise<DemoLinks> {
  const { random } = telemetry
  const startMs = nowMs - AGO_MS - (recorded.events.at(-1)?.timestamp ?? 0)
  const failedMs = startMs + recorded.checkoutMs
  const user = { id: 'usr_ada', name: 'Ada Lindqvist', email: 'ada.lindqvist@example.com', country: 'SE' }
  const visitor = { sessionId: random.uuid(), deviceId: random.uuid(), user }
  const visit = { sessionId: visitor.sessionId, version: '2.4.0' }
  browse(telemetry, visit, startMs)
  const failed = failCheckout(telemetry, visit, failedMs, recorded.checkout)
  await sendAll(
    'source maps of two releases',
    recorded.releases.map(release => () => installation.release(release)),
    progress,
  )
  const recording = recordedVisit(recorded, startMs).map(
    chunk => () => sendChunk(installation, visitor.sessionId, chunk),
  )
  const requests = [...requestsOf(installation, telemetry), ...sessionRequests(installation, telemetry, visitor)]
  await sendAll('failing checkout', [...requests, ...recording], progress)
  await installation.untilStored()
  const { sessionId } = visitor
  const openedMs = new Date(failedMs - BEFORE_MS).toISOString()
  return {
    finding: installation.consoleUrl(`findings/${await findFinding(installation, recorded)}`),
    trace: installation.consoleUrl(`traces/${failed.id}`),
    session: installation.consoleUrl(`sessions/${sessionId}?t=${openedMs}`),
  }
}

/** Returns the id of the finding once its source lines are known. */
async function findFinding(installation: Installation, { checkout }: Recorded): Promise<string> {
  const search = new URLSearchParams({ service: 'shop-web', q: checkout.message })
  const { findings } = await installation.read(`/v3/findings?${search}`, findingsSchema)
  const found = findings.find(({ type }) => type === checkout.type)
  if (found === undefined) throw new DemoFailure('the failing checkout is stored, but has no finding')
  await installation.until('its source lines', async () => {
    const { finding } = await installation.read(`/v3/findings/${found.id}`, framesSchema)
    return finding.frames.some(({ sourceLine }) => sourceLine !== undefined)
  })
  return found.id
}

/** Returns the requests that export what was collected, which is then forgotten. */
function requestsOf(installation: Installation, telemetry: Telemetry): Send[] {
  return (['traces', 'logs', 'metrics'] as const).flatMap(signal => {
    const bodies = [...exportsOf(signal, telemetry[signal].splice(0), BATCH[signal])]
    return bodies.map(body => () => installation.send(`/v1/${signal}`, body))
  })
}

/** Returns the requests of a page about its session: who visits, and that the page is open. */
function sessionRequests(
  installation: Installation,
  { truth }: Telemetry,
  { sessionId, deviceId, user }: Visitor,
): Send[] {
  truth.sessions[sessionId] = user?.id ?? null
  const heartbeat = () => installation.send('/v3/session', { sessionId, deviceId })
  if (user === undefined) return [heartbeat]
  const { id, ...person } = user
  const source = { type: 'custom', name: 'shop' }
  const identity = { sessionId, deviceId, identifier: id, source, ...person, traits: { plan: 'plus' } }
  return [() => installation.send('/v3/session/identify', identity), heartbeat]
}

const SOURCES_OF_ACTIVITY = [1, 2, 3, 5, 6]

function sendChunk(
  installation: Installation,
  sessionId: string,
  { windowId, segmentId, events }: ReturnType<typeof recordedVisit>[number],
): Promise<void> {
  const isActivity = ({ type, data }: (typeof events)[number]) =>
    type === 3 && SOURCES_OF_ACTIVITY.includes((data as { source: number }).source)
  const metadata = {
    windowId,
    segmentId,
    firstTs: events[0]?.timestamp,
    lastTs: events.at(-1)?.timestamp,
    eventCount: events.length,
    hasFullSnapshot: events.some(({ type }) => type === 2),
    activityCount: events.filter(isActivity).length,
  }
  const body = gzipSync(events.map(event => `${JSON.stringify(event)}\n`).join(''))
  return installation.send(`/v3/replay/upload/${encodeURIComponent(sessionId)}`, body, {
    'content-encoding': 'gzip',
    'x-replay-metadata': Buffer.from(JSON.stringify(metadata)).toString('base64'),
  })
}

async function sendAll(step: string, requests: readonly Send[], progress: DemoProgress): Promise<void> {
  progress.begin(step, requests.length)
  const rest = requests.values()
  const sendRest = async () => {
    for (const send of rest) {
      await send()
      progress.advance()
    }
  }
  try {
    await Promise.all(Array.from({ length: SENDERS }, sendRest))
  } finally {
    progress.end()
  }
}
