import type { ChildProcess, LineLog, ReadinessLimits } from '../processes/child-process.ts'

/** A server that this machine runs for us, with its data in `dir`. Starting it again with the same options finds the data. */
export interface LocalService extends ChildProcess {
  readonly url: string
}

export interface LocalServiceOptions extends ReadinessLimits {
  dir: string
  port: number
  log: LineLog
}
