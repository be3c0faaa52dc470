import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { WholeTrace } from '../../traces/spans/load-all-spans.ts'
import { TextBytes } from '../text-bytes.ts'
import { addResourceSpans, traceBytes } from './otlp-trace.ts'

const PARTIAL = 'the trace is larger than a response: only its first spans are shown'
/** Fields of tempopb.TraceByIDResponse, of which the status is 1 for a part of a trace. */
const FIELDS = { trace: 1, status: 3, message: 4 } as const
const IS_PARTIAL = 1

/** Returns the body of a response of `/api/traces/{id}` in JSON. */
export function tempoJson(whole: WholeTrace): Uint8Array {
  return around('{"batches":', whole, '}')
}

/** Returns the body of a response of `/api/traces/{id}` in protobuf. */
export function tempoProtobuf(whole: WholeTrace): Uint8Array {
  return traceBytes(whole)
}

/** Returns the body of a response of `/api/v2/traces/{id}` in JSON. */
export function tempoV2Json(whole: WholeTrace): Uint8Array {
  const status = whole.truncated ? `"status":"PARTIAL","message":"${PARTIAL}"` : '"status":"COMPLETE"'
  return around('{"trace":{"resourceSpans":', whole, `},${status}}`)
}

/** Returns the body of a response of `/api/v2/traces/{id}` in protobuf. */
export function tempoV2Protobuf(whole: WholeTrace): Uint8Array {
  const writer = new BinaryWriter().tag(FIELDS.trace, WireType.LengthDelimited).bytes(traceBytes(whole))
  if (whole.truncated) {
    writer.tag(FIELDS.status, WireType.Varint).int32(IS_PARTIAL)
    writer.tag(FIELDS.message, WireType.LengthDelimited).string(PARTIAL)
  }
  return writer.finish()
}

function around(before: string, whole: WholeTrace, after: string): Uint8Array {
  const out = new TextBytes()
  out.add(before)
  addResourceSpans(whole, out)
  out.add(after)
  return out.take()
}
