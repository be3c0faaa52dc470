import type { ClickHouseClient } from '../../clickhouse/client.ts'
import type { TraceKey } from '../../clickhouse/read-connection.ts'
import { loadLargeTrace, type WholeTrace } from '../traces/spans/load-all-spans.ts'
import { jaegerAnswerOfOne } from './jaeger/present-trace.ts'
import { tempoJson, tempoProtobuf, tempoV2Json, tempoV2Protobuf } from './tempo/render-trace.ts'

/** The forms in which a whole trace is returned. */
const FORMS = {
  tempoJson,
  tempoProtobuf,
  tempoV2Json,
  tempoV2Protobuf,
  jaeger: jaegerAnswerOfOne,
} satisfies Record<string, (whole: WholeTrace) => Uint8Array>

/** The name of a form. */
export type TraceForm = keyof typeof FORMS

/** A whole trace in a form. */
export interface FormedTrace {
  readonly key: TraceKey
  readonly form: TraceForm
}

/** Returns the body of the response with a trace. */
export function renderTrace(whole: WholeTrace, form: TraceForm): Uint8Array {
  return FORMS[form](whole)
}

/** Reads a trace of any size and returns the body of its response, or undefined if nothing of it is retained. */
export async function renderLargeTrace(
  client: ClickHouseClient,
  { key, form }: FormedTrace,
): Promise<Uint8Array | undefined> {
  // The main thread ends the reads.
  const whole = await loadLargeTrace(client, key, new AbortController().signal)
  return whole && renderTrace(whole, form)
}
