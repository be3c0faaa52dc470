import type { Sending } from '../../../alerts/calling/send-deps.ts'
import { ACT_PATH } from '../../../alerts/delivery/act-links.ts'
import type { Standing } from '../../../findings/standing.ts'
import { type FindingEntry, findingEntrySchema } from '../../../schemas/records/change.ts'
import { DAY_MS } from '../../../schemas/units.ts'
import { type Directory, newId } from '../../../shared/directory/directory.ts'
import type { DirectoryMemory } from '../../../shared/directory/directory-memory.ts'
import { parseRecord } from '../../../shared/directory/record.ts'
import { bodyTypeFault, bodyTypeOf } from '../../../shared/http/body-type.ts'
import type { IdentifiedRequest, Reply, Route } from '../../../shared/http/route.ts'
import { queryDirectory } from '../../http/directory.ts'
import { rfc3339FromUnixMs } from '../../http/format-time.ts'
import type { GuardedRouteDeps } from '../../http/guarded-route.ts'
import { replyUnlessUnavailable } from '../../http/outcome.ts'
import { withinShares } from '../../http/read-shares.ts'
import { FINDINGS } from '../../http/resource.ts'
import { type ExistingFinding, loadExisting } from '../work/change-route.ts'
import { type CommitDeps, commitChange, newStatus, withStatus } from '../work/commit-change.ts'
import { loadStandings, type StandingDeps } from '../work/load-standings.ts'
import { ACTS, type Act, askPage, asPage, donePage, gonePage, problemPage, refusedPage } from './act-page.ts'

interface Deps extends Pick<GuardedRouteDeps, 'logger' | 'queryTimeoutMs' | 'shares'>, CommitDeps, StandingDeps {
  readonly directory: CommitDeps['directory'] & StandingDeps['directory'] & Pick<Directory, 'alerts'>
  readonly directoryMemory: Pick<DirectoryMemory, 'refuse'>
  readonly deliveries: Pick<Sending, 'actLinks'> | undefined
}

const BODY_BYTES = 2_048
const FORM = 'application/x-www-form-urlencoded'
const WEEK_MS = 7 * DAY_MS
const NO_ACT = { code: 'REQUEST_INVALID', message: 'press one of the buttons of the page' } as const
/** How the log names a request, and the service that an overloaded workspace waits for. */
const OPERATION = { method: 'GET', path: ACT_PATH, service: 'operation', tag: 'alerts', credentials: [] } as const

/**
 * Returns the routes of the page to which the links of messages lead (docs/api/alerts.md#act). Their tokens are the credential.
 * GET changes nothing, because scanners of mail follow links. The token of a POST is in its form, so no other site can send one.
 */
export function createActRoutes(deps: Deps): readonly Route[] {
  const common = { path: ACT_PATH, renderProblem: problemPage }
  return [
    {
      ...{ ...common, method: 'GET', bodyLimitBytes: 0 },
      accept(head, exchange) {
        const token = head.query('token') ?? ''
        const asked = { token, exchange, closed: head.closed() }
        return answer(deps, asked, async ({ finding, standing, receiver }) =>
          askPage({ ...finding.row, status: standing.status }, receiver, token),
        )
      },
    },
    {
      ...{ ...common, method: 'POST', bodyLimitBytes: BODY_BYTES },
      accept(head, exchange) {
        const closed = head.closed()
        const fault = bodyTypeFault(bodyTypeOf(head), [FORM])
        return bytes => {
          const form = new URLSearchParams(bytes.toString('utf8'))
          const problem = fault ?? deps.directoryMemory.refuse()
          if (problem !== undefined) return problemPage(problem)
          const act = form.get('act') ?? ''
          const asked = { token: form.get('token') ?? '', exchange, closed }
          return answer(deps, asked, async opened => (isAct(act) ? perform(deps, opened, act) : problemPage(NO_ACT)))
        }
      },
    },
  ]
}

const isAct = (text: string): text is Act => Object.hasOwn(ACTS, text)

/** A request with a token. */
interface Asked {
  readonly token: string
  readonly exchange: IdentifiedRequest
  /** Fires when the client leaves before the response is complete. */
  readonly closed: AbortSignal
}

/** The finding that a good token leads to, and its message. */
interface Opened {
  readonly finding: ExistingFinding
  readonly standing: Standing
  /** The name of the receiver of the message. */
  readonly receiver: string
  readonly madeAtMs: number
  readonly deadline: AbortSignal
}

/** Answers a request whose token is good. All others get the same page. */
async function answer(deps: Deps, asked: Asked, run: (opened: Opened) => Promise<Reply>): Promise<Reply> {
  const { shares, logger, queryTimeoutMs } = deps
  const { exchange: request, closed } = asked
  const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
  const makeReply = async () => {
    const link = await openLink(deps, asked.token)
    if (link === undefined) return refusedPage()
    const { workspaceId, findingId } = link
    return withinShares(shares, { owner: workspaceId, operation: OPERATION, signal: deadline }, async () => {
      const finding = await loadExisting(deps, workspaceId, findingId, deadline)
      if (finding === undefined) return gonePage()
      const standings = await loadStandings(deps, finding, [finding.row.id], deadline)
      const standing: Standing = standings.get(finding.row.id) ?? { status: 'open' }
      return run({ ...link, finding, standing, deadline })
    })
  }
  const { unavailable } = FINDINGS
  return asPage(await replyUnlessUnavailable(makeReply, { operation: OPERATION, unavailable, logger, request, closed }))
}

/** Opens a token. Its receiver must still be there, be enabled, and have links. */
async function openLink({ deliveries, directory, now }: Deps, token: string) {
  const link = deliveries?.actLinks.open(token, now())
  if (link === undefined) return undefined
  const alerts = await queryDirectory(directory.alerts(link.workspaceId))
  const receiver = alerts?.receivers.find(({ id }) => id === link.receiverId)
  if (receiver === undefined || receiver.disabled || receiver.actions === false) return undefined
  return { ...link, receiver: receiver.name }
}

/** Does what a button names, unless that is done already. */
async function perform(deps: Deps, opened: Opened, act: Act): Promise<Reply> {
  const { finding, standing, receiver, madeAtMs, deadline } = opened
  const nowMs = deps.now()
  const at = rfc3339FromUnixMs(nowMs)
  const entry = { id: newId('act'), createdAt: at, by: null, via: { receiver } }
  let isRepeated = false
  let change: Parameters<Directory['changeFinding']>[2]
  if (act === 'acknowledge') {
    change = (before, activity) => {
      isRepeated = activity.some(text => isAcknowledged(text, madeAtMs))
      return isRepeated ? undefined : { work: before, entries: [{ ...entry, action: 'acknowledged' }] }
    }
  } else {
    const until = act === 'ignore' ? { until: rfc3339FromUnixMs(nowMs + WEEK_MS) } : {}
    const status = act === 'resolve' ? 'resolved' : 'ignored'
    const chosen = await newStatus(deps.clickhouse, finding, { status, ignoreUntil: until.until }, nowMs, deadline)
    // A status that has ended can be chosen again: of a finding that is back, or was ignored for a time.
    const ended = standing.status === status ? undefined : standing.statusChangedAt
    change = before => {
      isRepeated = before.status === status && before.statusAt !== ended
      const entries: FindingEntry[] = [{ ...entry, action: status, ...until }]
      return isRepeated ? undefined : { work: withStatus(before, chosen), entries }
    }
  }
  const changed = await commitChange(deps, finding, at, change, deadline)
  if (!changed.ok) return problemPage(changed.problem)
  return donePage({ ...finding.row, status: '' }, act, isRepeated)
}

/** Whether an entry states that the finding was acknowledged since a message was sent. */
function isAcknowledged(text: string, sinceMs: number): boolean {
  const { action, createdAt } = parseRecord('an activity', text, findingEntrySchema)
  return action === 'acknowledged' && Date.parse(createdAt) >= sinceMs
}
