import { Metadata } from '@grpc/grpc-js'
import type { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base'
import type { Signal } from '../../../schemas/queues/names.ts'
import type { Stack } from '../services/stack.ts'

/** The ways in which an export reaches the service: the address of the specification, the one of OTLP/HTTP, and OTLP/gRPC. */
export type Door = 'drain' | 'http' | 'grpc'

/** Returns the options of an exporter of the official SDK. Each door gets the key in another way. */
export function exporterOptions(stack: Stack, signal: Signal, door: Door, compression: CompressionAlgorithm) {
  const key = stack.secrets.publicKey
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer ${key}`)
  const headers: Record<string, string> = door === 'drain' ? { 'x-service-public-key': key } : { 'api-key': key }
  const path = door === 'drain' ? `/drain/v1/${signal}` : `/v1/${signal}`
  return { url: door === 'grpc' ? stack.grpcUrl : stack.ingestUrl + path, headers, metadata, compression }
}
