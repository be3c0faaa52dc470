import { S3Client } from '@aws-sdk/client-s3'
import { PermanentError, TransientError } from '../runtime/errors.ts'
import { classifyObjectStoreError } from './errors.ts'
import type { CallOutcome, ObjectStoreConnection, ObserveCall } from './types.ts'

/** The client of one bucket. */
export interface S3Bucket {
  readonly name: string
  readonly client: S3Client
  readonly requestTimeoutMs: number
  /**
   * Runs a request within the deadline and classifies its errors. Their messages name the `operation`. `progress` restarts
   * the deadline.
   */
  call<T>(operation: string, run: (abortSignal: AbortSignal, progress: () => void) => Promise<T>): Promise<T>
}

/** A stream keeps its connection until it is read. The SDK's default of 50 would soon make other calls wait. */
const MAX_SOCKETS = 256

/** The SDK would otherwise write a line to stderr for every stream that it could not send. It throws the error anyway. */
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} }

/** Creates the client of a bucket. */
export function openBucket(connection: ObjectStoreConnection): S3Bucket {
  const { bucket, accessKeyId, secretAccessKey, requestTimeoutMs } = connection
  const client = new S3Client({
    region: connection.region,
    ...(connection.endpoint === undefined ? {} : { endpoint: connection.endpoint, forcePathStyle: true }),
    ...(accessKeyId && secretAccessKey ? { credentials: { accessKeyId, secretAccessKey } } : {}),
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // With it, the SDK opens a separate connection for every body over 2 MiB.
    expectContinueHeader: false,
    maxAttempts: 1,
    logger: SILENT,
    requestHandler: { httpAgent: { maxSockets: MAX_SOCKETS }, httpsAgent: { maxSockets: MAX_SOCKETS } },
  })
  return {
    name: bucket,
    client,
    requestTimeoutMs,
    call: (operation, run) => {
      const called = callWithin(requestTimeoutMs, operation, run)
      return connection.observe === undefined ? called : observed(called, operation, connection.observe)
    },
  }
}

async function observed<T>(called: Promise<T>, operation: string, observe: ObserveCall): Promise<T> {
  const startedAt = performance.now()
  const end = (outcome: CallOutcome) => observe(operation, outcome, performance.now() - startedAt)
  try {
    const result = await called
    end('ok')
    return result
  } catch (error) {
    end(error instanceof PermanentError ? 'refused' : 'failed')
    throw error
  }
}

/** Runs a call within its deadline. A body that is read after the call has another deadline (`guardBody`). */
async function callWithin<T>(
  deadlineMs: number,
  operation: string,
  run: (abortSignal: AbortSignal, progress: () => void) => Promise<T>,
): Promise<T> {
  const aborter = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new TransientError(`S3 ${operation}: no answer within ${deadlineMs} ms`))
      aborter.abort()
    }, deadlineMs)
  })
  try {
    return await Promise.race([run(aborter.signal, () => timer?.refresh()), deadline])
  } catch (error) {
    if (error instanceof PermanentError || error instanceof TransientError) throw error
    throw classifyObjectStoreError(operation, error)
  } finally {
    clearTimeout(timer)
  }
}
