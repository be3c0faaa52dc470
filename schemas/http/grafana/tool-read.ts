import { z } from 'zod'
import { READER } from '../credentials.ts'
import { DEFAULT, wholeNumber } from '../fields.ts'
import type { PermittedOperation } from '../operation.ts'

/** Name, path and parameters of an operation that another tool has defined. */
export type NamedRead = Pick<PermittedOperation, 'operationId' | 'path' | 'summary' | 'parameters'>

/** Properties that the operations of one tool have in common, and the contents of one. */
interface ToolRead extends Pick<PermittedOperation, 'tag' | 'problems' | 'problemForm'> {
  /** Name of the tool, such as `Tempo`. */
  readonly tool: string
  readonly contents: PermittedOperation['success']['contents']
}

/** An operation by GET that reads telemetry as another tool returns it. */
export function toolRead(named: NamedRead, { tool, contents, ...common }: ToolRead): PermittedOperation {
  return {
    ...named,
    ...common,
    ...{ method: 'GET', service: 'api-analytics', credentials: READER, permission: 'org:telemetry:read' },
    success: { status: 200, description: `As ${tool}.`, contents },
  }
}

/** Largest `limit` that is read. One over the maximum of an operation means its maximum, because clients send what they like. */
export const LIMIT_READ_MAX = 999_999

/** Pattern of a duration of Go, in the document. Grafana sends parameters without a value. */
export const GO_DURATION = String.raw`^((\d+(\.\d+)?(ns|us|ms|s|m|h))+)?$`

/** Returns the schema of the `limit` of a search. */
export function toolLimit(max: number, byDefault: number) {
  return wholeNumber(0, LIMIT_READ_MAX)
    .transform(limit => Math.min(Math.max(limit, 1), max))
    .default(byDefault)
    .meta({ description: `Most traces, at most ${max}.`, [DEFAULT]: byDefault, example: byDefault })
}

/** The version of a tool whose interface this is, as Prometheus and Tempo return it. */
export const buildInfoSchema = z.strictObject({
  version: z.string(),
  revision: z.string(),
  branch: z.string(),
  buildUser: z.string(),
  buildDate: z.string(),
  goVersion: z.string(),
})
