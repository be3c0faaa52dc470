import type { ChildProcess, LineLog, ReadinessLimits } from '../processes/child-process.ts'

/** A server on this machine with its data in `dir`. A start with the same options finds the data again. */
export interface LocalService extends ChildProcess {
  readonly url: string
}

/** Options that all local servers have. */
export interface LocalServiceOptions extends ReadinessLimits {
  dir: string
  port: number
  log: LineLog
}
