import { promisify } from 'node:util'
import { gzip, gzipSync } from 'node:zlib'
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import type { PendingRecords } from './pending-records.ts'
import type { Destination } from './read-settings.ts'
import type { Request } from './send-blocking.ts'
import { sendInBackground } from './send-in-background.ts'

/** Bounds the memory of requests that wait for a service which is unavailable. */
const MAX_IN_FLIGHT = 30
const RETRY_FOR_MS = 60_000

interface Options<Batch> {
  readonly destination: Destination
  readonly serialize: (batch: Batch) => Uint8Array | undefined
  readonly timeoutMs: number
  readonly onFailure: (error: Error) => void
}

interface Exporter<Batch> {
  export(batch: Batch, done: (result: ExportResult) => void): void
  shutdown(): Promise<void>
  forceFlush(): Promise<void>
  /** Returns the request that sends the batch. */
  requestsOf(batch: Batch): Request[]
}

/**
 * Creates an exporter that takes a batch over and sends it in the background. A processor that waits for an answer would keep the
 * process alive.
 */
export function createExporter<Batch>(
  options: Options<Batch>,
  onSettled: (batch: Batch) => void = () => {},
): Exporter<Batch> {
  const { destination, serialize, timeoutMs, onFailure } = options
  const { url, headers, isCompressed } = destination
  const inFlight = new Set<Promise<void>>()
  const type = {
    ...headers,
    'content-type': 'application/x-protobuf',
    ...(isCompressed && { 'content-encoding': 'gzip' }),
  }

  async function send(batch: Batch): Promise<void> {
    try {
      if (inFlight.size >= MAX_IN_FLIGHT) throw new Error('too many requests wait for an answer')
      const bytes = serialize(batch)
      if (bytes === undefined) return
      const body = isCompressed ? await promisify(gzip)(bytes) : bytes
      await sendInBackground({ url, headers: type, body }, { timeoutMs, retryForMs: RETRY_FOR_MS })
    } catch (error) {
      onFailure(error instanceof Error ? error : new Error(String(error)))
    } finally {
      onSettled(batch)
    }
  }

  async function flush(): Promise<void> {
    await Promise.all(inFlight)
  }

  return {
    export(batch, done) {
      const sending = send(batch)
      inFlight.add(sending)
      void sending.finally(() => inFlight.delete(sending))
      done({ code: ExportResultCode.SUCCESS })
    },
    forceFlush: flush,
    shutdown: flush,
    requestsOf(batch) {
      const bytes = serialize(batch)
      return bytes === undefined ? [] : [{ url, headers: type, body: isCompressed ? gzipSync(bytes) : bytes }]
    },
  }
}

/** The same for records, which are pending until they were sent or given up. */
export function createRecordExporter<Item>(options: Options<Item[]>, pending: PendingRecords<Item>): Exporter<Item[]> {
  return createExporter(options, batch => pending.remove(batch))
}
