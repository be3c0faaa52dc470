import { S3ServiceException } from '@aws-sdk/client-s3'
import { errorMessage, PermanentError, TransientError } from '../runtime/errors.ts'

/** Only a request that is wrong in itself is permanent; a missing bucket or a refused signature is the operator's to mend. */
const REQUEST_FAULTS = new Set([
  'EntityTooLarge',
  'KeyTooLongError',
  'InvalidObjectName',
  'InvalidRange',
  'InvalidRequest',
  'MetadataTooLarge',
  'InvalidArgument',
])
/** Node's, for a header (metadata, content type) with characters that HTTP has no place for. */
const INVALID_HEADER = 'ERR_INVALID_CHAR'

export function classifyObjectStoreError(operation: string, error: unknown): PermanentError | TransientError {
  const code = errorCode(error)
  const text = errorMessage(error)
  const status = refusalStatus(error)
  const what = status === undefined ? code : `${code} (${status})`
  const message = `S3 ${operation}: ${[what, text].filter(Boolean).join(': ')}`
  const isPermanent = error instanceof S3ServiceException ? REQUEST_FAULTS.has(code) : code === INVALID_HEADER
  return isPermanent ? new PermanentError(message, { cause: error }) : new TransientError(message, { cause: error })
}

/** The status of a refusal by the store; undefined when there was no answer. */
export function refusalStatus(error: unknown): number | undefined {
  return error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined
}

/** A refusal that says that the object is not there; that of a HEAD has no body, and may mean the bucket too. */
export function isNoSuchObject(error: unknown): boolean {
  return error instanceof S3ServiceException && (error.name === 'NoSuchKey' || error.name === 'NotFound')
}

/** S3's code of a refusal, Node's of a network fault (whose message may be empty), else the error's name. */
function errorCode(error: unknown): string {
  if (error instanceof S3ServiceException) return error.name
  if (!(error instanceof Error)) return ''
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}
