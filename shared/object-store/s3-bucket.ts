import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
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
  const agentOptions = { keepAlive: true, maxSockets: MAX_SOCKETS }
  const agents = { httpAgent: new HttpAgent(agentOptions), httpsAgent: new HttpsAgent(agentOptions) }
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
    requestHandler: agents,
  })
  const onOverdue = () => closeIdle(Object.values(agents))
  return {
    name: bucket,
    client,
    requestTimeoutMs,
    call: (operation, run) => {
      const called = callWithin({ deadlineMs: requestTimeoutMs, onOverdue }, operation, run)
      return connection.observe === undefined ? called : observed(called, operation, connection.observe)
    },
  }
}

/**
 * Closes the connections that no request uses. If the network has forgotten one that a request used, it has probably forgotten
 * these too, and each would cost a request its whole deadline.
 */
function closeIdle(agents: readonly HttpAgent[]): void {
  for (const { freeSockets } of agents) for (const socket of Object.values(freeSockets).flat()) socket?.destroy()
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
  { deadlineMs, onOverdue }: { readonly deadlineMs: number; readonly onOverdue: () => void },
  operation: string,
  run: (abortSignal: AbortSignal, progress: () => void) => Promise<T>,
): Promise<T> {
  const aborter = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new TransientError(`S3 ${operation}: no answer within ${deadlineMs} ms`))
      aborter.abort()
      onOverdue()
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
