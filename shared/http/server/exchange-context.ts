import type { Logger } from '../../runtime/logger.ts'
import type { Route } from '../route.ts'
import type { ServerLimit } from './problem.ts'
import type { BodyContext } from './request-body.ts'
import type { RequestHeadView } from './request-head.ts'

/** State that the exchanges of one server share. */
export interface ExchangeContext extends BodyContext {
  readonly logger: Logger
  readonly head: RequestHeadView
  /** Exchanges whose body is still arriving; swept at an interval. */
  readonly arriving: Set<{ sweep(): void }>
  /** Number of sweeps for which the rest of an unwanted body is read. */
  readonly discardSweeps: number
  /** Number of bytes of it that are read. */
  readonly discardLimitBytes: number
  /** Time that a client may lag behind the speed at which it must read. */
  readonly readAllowanceMs: number
  readonly observe: ((route: Route, status: number, durationMs: number) => void) | undefined
  /** Called for each request that is refused for a limit of the server. */
  readonly onRefused: ((limit: ServerLimit) => void) | undefined
  readonly now: () => number
  /** Whether the server is stopping. Responses then ask the client to close the connection. */
  stopping: boolean
  inFlight: number
  /** Number of responses without a body so far. */
  emptyReplies: number
  /** Called when `inFlight` falls to zero. */
  onIdle: (() => void) | undefined
}
