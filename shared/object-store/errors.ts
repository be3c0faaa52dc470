import { S3ServiceException } from '@aws-sdk/client-s3'
import { errorMessage, PermanentError, TransientError } from '../runtime/errors.ts'

/** Codes of requests that are wrong themselves. A missing bucket or a refused signature can be fixed by the operator. */
const REQUEST_FAULTS = new Set([
  'EntityTooLarge',
  'KeyTooLongError',
  'InvalidObjectName',
  'InvalidRange',
  'InvalidRequest',
  'MetadataTooLarge',
  'InvalidArgument',
])
/** Code of Node.js for a header (metadata, content type) with characters that HTTP does not allow. */
const INVALID_HEADER = 'ERR_INVALID_CHAR'

/** Returns the error of an operation as a PermanentError or a TransientError. */
export function classifyObjectStoreError(operation: string, error: unknown): PermanentError | TransientError {
  const code = errorCode(error)
  const text = errorMessage(error)
  const status = refusalStatus(error)
  const summary = status === undefined ? code : `${code} (${status})`
  const message = `S3 ${operation}: ${[summary, text].filter(Boolean).join(': ')}`
  const isPermanent = error instanceof S3ServiceException ? REQUEST_FAULTS.has(code) : code === INVALID_HEADER
  return isPermanent ? new PermanentError(message, { cause: error }) : new TransientError(message, { cause: error })
}

/** Returns the HTTP status with which the store refused a request; undefined if it did not respond. */
export function refusalStatus(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined
}

/** Returns whether the store reports a missing object. The response to a HEAD may also mean a missing bucket. */
export function isNoSuchObject(error: unknown): boolean {
  return error instanceof S3ServiceException && (error.name === 'NoSuchKey' || error.name === 'NotFound')
}

/** Returns the code of S3 or of Node.js (whose message of a network error may be empty), else the name of the error. */
function errorCode(error: unknown): string {
  if (error instanceof S3ServiceException) return error.name
  if (!(error instanceof Error)) return ''
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
