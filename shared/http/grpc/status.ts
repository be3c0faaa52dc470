import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { PROBLEMS, type Problem } from '../../../schemas/http/problems.ts'
import { type OtlpStatus, statusOf } from '../../../schemas/http/telemetry.ts'
import type { Header, Reply } from '../route.ts'

/** Returns a status in protobuf (`google.rpc.Status`). */
export function statusBytes({ code, message, details }: OtlpStatus): Uint8Array {
  const status = new BinaryWriter().tag(1, WireType.Varint).int32(code).tag(2, WireType.LengthDelimited).string(message)
  for (const { '@type': type, retryDelay } of details ?? []) {
    const detail = status.tag(3, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).string(type)
    const delay = detail.tag(2, WireType.LengthDelimited).fork().tag(1, WireType.LengthDelimited).fork()
    delay.tag(1, WireType.Varint).int64(Number.parseInt(retryDelay, 10)).join().join().join()
  }
  return status.finish()
}

/** Renders a problem as the trailers of a call. The status of the reply is the one of HTTP, by which requests are counted. */
export function grpcProblem(problem: Problem): Reply {
  const status = statusOf(problem)
  const headers: Header[] = [
    ['grpc-status', String(status.code)],
    ['grpc-message', encodeMessage(status.message)],
  ]
  if (status.details !== undefined) {
    headers.push(['grpc-status-details-bin', Buffer.from(statusBytes(status)).toString('base64')])
  }
  return { status: problem.status ?? PROBLEMS[problem.code].status, headers }
}

/** Returns a message with all bytes percent-encoded that gRPC does not allow in `grpc-message`. */
function encodeMessage(message: string): string {
  return message.replaceAll(/[^ -$&-~]/gu, encodeURIComponent)
}
