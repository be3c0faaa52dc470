import { DAY_MS } from '../../schemas/units.ts'
import { listFindings, listLogs, listMetrics, listReleases, listSessions, listTraces } from '../api/generated/client.ts'
import { addressOf } from '../state/router.ts'

/** Lists that show how to send something, as long as nothing was sent. */
export type ListKind = 'findings' | 'traces' | 'logs' | 'metrics' | 'sessions' | 'releases'

/** Something that was received: the words of a link, and where it leads. */
export interface Arrival {
  readonly text: string
  readonly address: string
}

type Options = { readonly signal: AbortSignal }
type Look = (options: Options) => Promise<Arrival | null>

const longAgo = () => new Date(Date.now() - 30 * DAY_MS).toISOString()

/** Looks for what the workspace has received last, with one entry of the list. Null: nothing yet. */
export const LOOKS: Readonly<Record<ListKind, Look>> = {
  // A span without an error makes no finding, but shows that the settings are right.
  findings: async options =>
    (await lookForFinding(options)) ?? (await LOOKS.traces(options)) ?? (await LOOKS.logs(options)),
  async traces(options) {
    const { traces } = await listTraces({ limit: 1 }, options)
    const [trace] = traces
    if (!trace) return null
    const name = [trace.firstSpan.name || 'a span', trace.services[0]].filter(Boolean).join(' of ')
    return { text: `A span has arrived: ${name}`, address: addressOf(`traces/${trace.traceId}`) }
  },
  async logs(options) {
    const { logs } = await listLogs({ $from: longAgo(), limit: 1 }, options)
    const [log] = logs
    if (!log) return null
    return { text: 'A log record has arrived', address: addressOf('logs', { from: rangeSince(log.timestamp) }) }
  },
  async metrics(options) {
    const { metrics } = await listMetrics({ $from: longAgo(), limit: 1 }, options)
    const [metric] = metrics
    if (!metric) return null
    const from = rangeSince(metric.lastPointAt)
    const text = `A metric has arrived: ${metric.name || 'without a name'}`
    return { text, address: addressOf(`metrics/${encodeURIComponent(metric.name)}`, { from }) }
  },
  async sessions(options) {
    const { sessions } = await listSessions({ limit: 1 }, options)
    const [session] = sessions
    if (!session) return null
    return { text: 'A session has arrived', address: addressOf(`sessions/${encodeURIComponent(session.id)}`) }
  },
  async releases(options) {
    const { releases } = await listReleases({ limit: 1 }, options)
    const [release] = releases
    if (!release) return null
    const address = addressOf(`releases/${encodeURIComponent(release.slug)}`)
    return { text: `A release has arrived: ${release.version}`, address }
  },
}

async function lookForFinding(options: Options): Promise<Arrival | null> {
  const { findings } = await listFindings({ limit: 1 }, options)
  const [finding] = findings
  if (!finding) return null
  return { text: `A finding has arrived: ${finding.type || 'Exception'}`, address: addressOf(`findings/${finding.id}`) }
}

/** Returns the shortest range in which a time is, of a day at least. */
function rangeSince(iso: string): string {
  const ageMs = Date.now() - Date.parse(iso)
  if (ageMs < DAY_MS) return 'now-24h'
  return ageMs < 7 * DAY_MS ? 'now-7d' : 'now-30d'
}
